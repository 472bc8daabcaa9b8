//! Transactions and calls on a [`State`].

use std::sync::Arc;
use std::time::Duration;

use revm::interpreter::{CallInputs, InterpreterResult, SharedMemory};
use revm::primitives::{Address, Bytes, B256};

use crate::exec::{self, Callees, Exec};
use crate::fork;
use crate::precompiles;
use crate::state::State;
use crate::stylus::cache::ModuleCache;
use crate::stylus::run;

pub use crate::arbos::ARBOS_STATE;
pub use crate::trace::{CallFrame, CallKind, Trace, TraceRequest};
pub use crate::transaction::{BlockCtx, Config, Outcome, Status, StylusFrame, TxCtx, TxError, ARBOS_VERSIONS, BATCH_POSTER};

/// The execution half of the node: the rules, and the compiled programs.
///
/// It holds no chain state, so one instance serves any number of [`State`]s, from several threads.
#[derive(Debug)]
pub struct Evm {
    config: Config,
    callees: Arc<dyn Callees>,
    /// The longest that a call, an estimate's attempt or a trace runs.
    limit: Duration,
}

/// go-ethereum's limit of a call.
const LIMIT: Duration = Duration::from_secs(5);

/// Whether Ethereum or Arbitrum has a precompile at an address, in any version known here.
pub(crate) fn is_precompile(address: &Address) -> bool {
    exec::is_precompile(address)
}

impl Evm {
    /// Rules for one chain.
    ///
    /// # Errors
    /// An ArbOS version outside [`ARBOS_VERSIONS`], or a machine the WASM engine doesn't support.
    pub fn new(config: Config) -> Result<Self, String> {
        if !ARBOS_VERSIONS.contains(&config.arbos) {
            return Err(format!(
                "ArbOS version {} is not known here: {} to {} are",
                config.arbos,
                ARBOS_VERSIONS.start(),
                ARBOS_VERSIONS.end()
            ));
        }
        let callees = Arc::new(ModuleCache::new(config.debug)?);
        Ok(Self { config, callees, limit: LIMIT })
    }

    /// The rules in force.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Runs a transaction and writes its effects into `state`, fees and nonce included.
    ///
    /// # Errors
    /// The transaction can't be included; `state` is as before.
    pub fn transact(&self, state: &mut State, block: &BlockCtx, tx: &TxCtx) -> Result<Outcome, TxError> {
        self.run(state, block, tx)
    }

    /// Runs a transaction or call and discards its effects.
    ///
    /// # Errors
    /// As for [`Evm::transact`].
    pub fn call(&self, state: &State, block: &BlockCtx, tx: &TxCtx) -> Result<Outcome, TxError> {
        let mut scratch = state.clone();
        // A call stands alone: it doesn't profit from what the block has run before it.
        scratch.recent = Arc::default();
        self.run(&mut scratch, block, tx)
    }

    /// Refuses a transaction that can't be included in any later block either, as far as `state` tells.
    pub(crate) fn check_lasting(&self, state: &State, tx: &TxCtx) -> Result<(), TxError> {
        let check = || exec::check_lasting(&self.config, state, tx);
        fork::checked(check).unwrap_or_else(|reason| Err(TxError::Unread(reason)))
    }

    fn run(&self, state: &mut State, block: &BlockCtx, tx: &TxCtx) -> Result<Outcome, TxError> {
        if !state.is_copy() {
            return self.run_on(state, block, tx);
        }
        let before = state.clone();
        fork::checked(|| self.run_on(state, block, tx)).unwrap_or_else(|reason| {
            *state = before;
            Err(TxError::Unread(reason))
        })
    }

    fn run_on(&self, state: &mut State, block: &BlockCtx, tx: &TxCtx) -> Result<Outcome, TxError> {
        let parent = block.recent_hashes.last().map_or(B256::ZERO, |(_, hash)| *hash);
        state.start_block(block.l2_number, block.l1_number, parent);
        self.remember(state, block.recent_hashes);
        exec::transact(&self.config, &self.callees, state, block, tx, self.limit)
    }
}

impl Callees for ModuleCache {
    fn keep(&self, code_hash: B256, version: u16, wasm: &[u8]) -> Result<(), String> {
        self.insert(code_hash, version, wasm).map(drop)
    }

    fn precompile(
        &self,
        exec: &mut Exec,
        depth: usize,
        address: Address,
        inputs: &CallInputs,
        input: &[u8],
    ) -> InterpreterResult {
        precompiles::run(exec, depth, address, inputs, input)
    }

    fn program(
        &self,
        exec: Box<Exec>,
        depth: usize,
        memory: SharedMemory,
        inputs: &CallInputs,
        code: (B256, Bytes),
    ) -> (Box<Exec>, InterpreterResult) {
        run::run(self, exec, depth, memory, inputs, code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_or_a_trace_ends_at_its_limit_and_a_transaction_does_not() {
        let mut evm = Evm::new(Config::default()).unwrap();
        let block = BlockCtx { gas_limit: 1 << 50, ..BlockCtx::default() };
        let tx = TxCtx { to: Some(Address::repeat_byte(7)), gas_limit: 100_000, ..TxCtx::default() };
        let call = TxCtx { is_call: true, ..tx.clone() };
        let trace = TxCtx { trace: TraceRequest::Accessed, ..tx.clone() };
        let mut state = State::default();
        assert!(evm.call(&state, &block, &call).is_ok());
        evm.limit = Duration::ZERO;
        for timed in [call, trace] {
            let error = evm.call(&state, &block, &timed).unwrap_err();
            assert_eq!(error, TxError::TimedOut(Duration::ZERO));
        }
        assert!(evm.transact(&mut state, &block, &tx).is_ok());
        assert_eq!(TxError::TimedOut(LIMIT).to_string(), "execution aborted (timeout = 5s)");
    }
}
