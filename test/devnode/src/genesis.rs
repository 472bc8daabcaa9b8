//! The state a chain starts from.

use revm::primitives::{address, Address, U256};

use crate::evm::Evm;
use crate::precompiles;
use crate::state::State;

/// The public development account of Nitro's devnode, the first chain owner here too.
pub const DEV_ACCOUNT: Address = address!("3f1eae7d46d88f08fc2f8ed27fcb2ab183eb2d0e");

impl Evm {
    /// A state with the given balances and the accounts a fresh development chain has.
    pub fn genesis(&self, balances: &[(Address, U256)]) -> State {
        let mut state = State::new();
        precompiles::genesis(&mut state, self.config().arbos, DEV_ACCOUNT);
        for (address, balance) in balances {
            state.set_balance(*address, *balance);
        }
        state
    }
}
