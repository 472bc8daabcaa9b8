//! The state a chain starts from.
//!
//! Beside the precompiles there are four contracts where tools expect them. The CREATE2 factory and Multicall3 are the ones of every chain,
//! byte for byte. `genesis/Multicall3.sol` is the published source (mds1/multicall3, MIT), unchanged. solc 0.8.12 makes
//! `genesis/Multicall3.hex` of it under the name `Multicall3.sol`, with the optimiser at 10,000,000 runs and no other setting. The metadata
//! at its end hashes name and settings too.
//!
//! StylusDeployer and CacheManager are written anew for this node: same interface, same address, not the same code. Their sources are
//! `genesis/*.sol`, compiled by solc 0.8.30, optimiser 200 runs, cancun, no metadata, into `genesis/*.hex`. Their cost differs slightly
//! from a network's, and the cache manager holds no auction. StylusDeployer has the length of the code at its well-known address, since
//! tools look at it: the missing bytes are zeros, which are never reached.

use revm::primitives::{address, hex, Address, Bytes, B256, U256};

pub use crate::arbos::HISTORY_STORAGE;
use crate::evm::Evm;
use crate::precompiles;
use crate::state::State;

/// The public development account of Nitro's devnode, the first chain owner here too.
pub const DEV_ACCOUNT: Address = address!("3f1eae7d46d88f08fc2f8ed27fcb2ab183eb2d0e");
/// Creates contracts by CREATE2: the first 32 bytes sent to it are the salt, the rest is init code.
pub const CREATE2_FACTORY: Address = address!("4e59b44847b379578588920ca78fbf26c0b4956c");
/// Carries out many calls in one, and says of each whether it failed.
pub const MULTICALL3: Address = address!("ca11bde05977b3631167028862be2a173976ca11");
/// Deploys, activates and initialises a program in one transaction.
pub const STYLUS_DEPLOYER: Address = address!("cecba2f1dc234f70dd89f2041029807f8d03a990");
/// Bytes of its code on every network.
const STYLUS_DEPLOYER_LENGTH: usize = 2_269;
/// Where the Stylus SDK's own development chain has its cache manager.
pub const CACHE_MANAGER: Address = address!("2f8bd4eab69764c105add7de7cb0402557a44e6f");

/// Slots of [`HISTORY_STORAGE`].
const HISTORY_SIZE: u64 = 393_168;
/// Given a block number, returns its hash or fails; asks ArbSys for the current number.
const HISTORY_STORAGE_CODE: &str = "3373fffffffffffffffffffffffffffffffffffffffe1460605760203603605c575f3563a3b1b31d\
                                    5f5260205f6004601c60645afa15605c575f51600181038211605c57816205ffd0910311605c576205\
                                    ffd09006545f5260205ff35b5f5ffd5b5f356205ffd0600163a3b1b31d5f5260205f6004601c60645a\
                                    fa15605c575f5103065500";

/// Writes the hashes of the blocks that ended since the last call into [`HISTORY_STORAGE`].
fn record_hashes(state: &mut State, hashes: &[(u64, B256)]) {
    let after = state.recorded;
    for (number, hash) in hashes.iter().rev().take_while(|(number, _)| Some(*number) > after) {
        state.set_storage(HISTORY_STORAGE, U256::from(number % HISTORY_SIZE), U256::from_be_bytes(hash.0));
    }
    state.recorded = hashes.last().map(|(number, _)| *number);
}

const CREATE2_FACTORY_CODE: &str = "7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\
                                    e03601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3";

impl Evm {
    /// ArbOS's work at the start of every block, also of one without transactions: it keeps the hashes of earlier blocks.
    pub(crate) fn remember(&self, state: &mut State, hashes: &[(u64, B256)]) {
        if self.config().arbos >= 40 {
            record_hashes(state, hashes);
        }
    }

    /// A state with the given balances and the accounts a fresh development chain has.
    pub fn genesis(&self, balances: &[(Address, U256)]) -> State {
        let mut state = State::new();
        precompiles::genesis(&mut state, self.config().arbos, DEV_ACCOUNT, CACHE_MANAGER);
        for (address, code) in [
            (CREATE2_FACTORY, CREATE2_FACTORY_CODE),
            (MULTICALL3, include_str!("genesis/Multicall3.hex")),
            (STYLUS_DEPLOYER, include_str!("genesis/StylusDeployer.hex")),
            (CACHE_MANAGER, include_str!("genesis/CacheManager.hex")),
        ] {
            let mut code = hex::decode(code.trim()).expect("hexadecimal digits");
            if address == STYLUS_DEPLOYER {
                code.resize(STYLUS_DEPLOYER_LENGTH, 0);
            }
            state.set_nonce(address, 1);
            state.set_code(address, Bytes::from(code));
        }
        if self.config().arbos >= 40 {
            state.set_nonce(HISTORY_STORAGE, 1);
            state.set_code(HISTORY_STORAGE, Bytes::from(hex::decode(HISTORY_STORAGE_CODE).expect("hexadecimal digits")));
        }
        for (address, balance) in balances {
            state.set_balance(*address, *balance);
        }
        state
    }
}
