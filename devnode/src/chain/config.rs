//! The configuration a chain starts with, and its constants.

use std::sync::Arc;

use alloy_primitives::U256;

use crate::fork::Fork;

/// The key of the account that the Nitro development node funds. Everybody knows it.
pub const NITRO_DEV_KEY: &str = "0xb6b15c8cb491557369f3c7d2c287b053eb229daa9c22138887752191c9520659";
/// The mnemonic that other development nodes use. Everybody knows it.
pub const TEST_MNEMONIC: &str = "test test test test test test test test test test test junk";
/// Block gas limit in the header, as on Arbitrum, where it does not bound anything.
pub const BLOCK_GAS_LIMIT: u64 = 1 << 50;
/// Gas of a call that names none: Nitro's RPC gas cap.
pub const CALL_GAS: u64 = 50_000_000;
/// Gas limit of an unsigned in-process transaction that names none: the most one transaction may use.
pub const TX_GAS: u64 = 32_000_000;
/// Most bytes of a signed transaction, as Nitro's sequencer has it.
pub(super) const MAX_TX_BYTES: usize = 95_000;
/// Most wei that all gas of a signed transaction may come to at its cap: the default of go-ethereum's endpoints, 1 ether.
pub(super) const MAX_FEE: U256 = U256::from_limbs([1_000_000_000_000_000_000, 0, 0, 0]);
/// Seconds between two L1 blocks, by which `block.number` advances.
pub const L1_BLOCK_TIME: u64 = 12;
/// Most empty blocks one request may mine.
pub const MAX_EMPTY_BLOCKS: u64 = 100_000;
/// The shortest time between two blocks that are mined by the clock.
pub const MIN_INTERVAL: std::time::Duration = std::time::Duration::from_millis(10);
/// Most bytes of logs in one answer.
pub const MAX_LOG_BYTES: usize = 25_000_000;

/// Where timestamps come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The machine's clock plus the seconds that time travel added.
    System,
    /// Stands still at this second until moved by time travel: runs repeat exactly.
    Manual(u64),
}

/// How much of the past is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Blocks with transactions, receipts and logs.
    pub blocks: usize,
    /// States one can still call, read and trace on.
    pub states: usize,
}

impl History {
    /// Every block, and the states of the last 10,000, so that memory grows by blocks and state alone.
    pub const DEFAULT: Self = Self { blocks: usize::MAX, states: 10_000 };
    /// The newest block only: memory grows with the state alone, however many transactions run.
    pub const NONE: Self = Self { blocks: 1, states: 0 };
}

/// The configuration a chain starts with.
#[derive(Clone, Debug)]
pub struct Config {
    /// EIP-155 chain id; 412346 as the Nitro development node has it.
    pub chain_id: u64,
    /// ArbOS version, see [`crate::evm::ARBOS_VERSIONS`].
    pub arbos_version: u64,
    /// Accounts derived from [`TEST_MNEMONIC`], besides the Nitro development account.
    pub accounts: u32,
    /// Wei each account begins with.
    pub balance: U256,
    /// Wei per gas. It stays the same until `setNextBlockBaseFeePerGas`: there is no congestion here.
    pub base_fee: u64,
    /// Where timestamps come from.
    pub clock: Clock,
    /// How much of the past is kept.
    pub history: History,
    /// Whether headers carry the root of the state, which costs some time in every block.
    pub state_root: bool,
    /// The chain on whose state this one goes on. [`Config::of_fork`] takes the settings from it that must fit.
    pub fork: Option<Arc<Fork>>,
}

impl Config {
    /// Goes on where another chain stood, with its id, its ArbOS version and its price of gas.
    pub fn of_fork(fork: Arc<Fork>) -> Self {
        Self {
            chain_id: fork.chain_id(),
            arbos_version: fork.arbos_version(),
            base_fee: fork.base_fee(),
            fork: Some(fork),
            ..Self::default()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            chain_id: 412_346,
            arbos_version: 61,
            accounts: 10,
            balance: U256::from(1_000_000) * U256::from(10).pow(U256::from(18)),
            base_fee: 100_000_000,
            clock: Clock::System,
            history: History::DEFAULT,
            state_root: false,
            fork: None,
        }
    }
}
