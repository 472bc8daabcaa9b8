//! The state a chain starts from.

use revm::primitives::{Address, U256};

use crate::evm::Evm;
use crate::state::State;

impl Evm {
    /// A state with the given balances and the accounts a fresh development chain has.
    pub fn genesis(&self, balances: &[(Address, U256)]) -> State {
        let mut state = State::new();
        for (address, balance) in balances {
            state.set_balance(*address, *balance);
        }
        state
    }
}
