//! Runs transactions and frames.
//!
//! EVM code is interpreted by revm. Frames are opened here, not in revm's handler, because a frame may be a Stylus
//! program or an ArbOS precompile and either may open further frames. The whole context of a transaction, [`Exec`],
//! is handed from frame to frame by value: a WASM instance owns it while it runs.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use revm::context::{BlockEnv, CfgEnv, Context, Journal, JournalTr, LocalContext, LocalContextTr, TxEnv};
use revm::context_interface::cfg::GasParams;
use revm::context_interface::context::ContextError;
use revm::context_interface::journaled_state::account::JournaledAccountTr;
use revm::context_interface::result::EVMError;
use revm::handler::instructions::EthInstructions;
use revm::handler::pre_execution::apply_auth_list;
use revm::handler::{return_create, CallFrame as RevmCall, CreateFrame as RevmCreate, EthFrame, FrameData, FrameResult};
use revm::interpreter::interpreter::{EthInterpreter, ExtBytecode};
use revm::interpreter::interpreter_action::FrameInit;
use revm::interpreter::interpreter_types::{Jumps, LoopControl};
use revm::interpreter::{
    CallInput, CallInputs, CallOutcome, CallScheme, CallValue, CreateInputs, CreateOutcome, CreateScheme, FrameInput, Gas,
    InputsImpl, Instruction, InstructionContext, InstructionResult, Interpreter, InterpreterAction, InterpreterResult,
    SharedMemory,
};
use revm::precompile::{PrecompileSpecId, Precompiles};
use revm::primitives::hardfork::SpecId;
use revm::primitives::{Address, AddressSet, Bytes, B256, KECCAK_EMPTY, U256};
use revm::state::{AccountInfo, Bytecode};
use revm::Database;
use rustix::time::{clock_gettime, ClockId};

use crate::arbos::{Number, ARBOS_STATE};
use crate::precompiles::addresses::{ADDRESSES, NETWORK_FEE_ACCOUNT};
use crate::state::State;
use crate::stylus;
use crate::trace::profile::{Intrinsic, Totals};
use crate::trace::steps::{Ended, Now};
use crate::trace::{Accessed, CallKind, Entered, Left, Trace, TraceRequest, Tracer};
use crate::transaction::{BlockCtx, Config, Outcome, Status, StylusFrame, TxCtx, TxError, ARBOS_VERSIONS};

/// revm's context over our state.
pub(crate) type Ctx = Context<BlockEnv, TxEnv, CfgEnv, State, Journal<State>, (), LocalContext>;

/// Gas one transaction may use from ArbOS 50 on, and a block before.
pub(crate) const MAX_TX_GAS: u64 = 32_000_000;
/// EIP-170, which Arbitrum keeps.
pub(crate) const MAX_CODE_SIZE: usize = 24_576;
/// Gas of every transaction.
const TX_BASE: u64 = 21_000;
/// Call depth at which calls fail.
const MAX_DEPTH: usize = 1024;
/// Native stack a frame may need: the interpreters of EVM and WASM keep the stacks of what they run elsewhere.
const FRAME_STACK: usize = 512 * 1024;
/// Stack taken from the system when a thread's own is short.
const STACK_CHUNK: usize = 64 * 1024 * 1024;

/// The block, with everything the programs and precompiles of a transaction may ask about.
pub(crate) struct Block {
    pub l2_number: u64,
    pub l1_number: u64,
    pub timestamp: u64,
    /// The value of BASEFEE and `block_basefee`.
    pub base_fee: u128,
    pub base_fee_in_block: u128,
    pub gas_limit: u64,
    pub coinbase: Address,
    pub hashes: Vec<(u64, B256)>,
    /// See [`BlockCtx::moved_precompiles`].
    pub moved: Vec<(Address, Address)>,
}

/// A frame that holds no EVM code. It opens frames itself, so here it is known by this trait alone.
pub(crate) trait Callees: fmt::Debug + Send + Sync {
    /// Compiles an instrumented program, for when it is called.
    ///
    /// # Errors
    /// The engine's error.
    fn keep(&self, code_hash: B256, version: u16, wasm: &[u8]) -> Result<(), String>;

    /// Runs a precompile of ArbOS.
    fn precompile(&self, exec: &mut Exec, depth: usize, address: Address, inputs: &CallInputs, input: &[u8])
        -> InterpreterResult;

    /// Runs a Stylus program, given its code and the hash of that.
    fn program(
        &self,
        exec: Box<Exec>,
        depth: usize,
        memory: SharedMemory,
        inputs: &CallInputs,
        code: (B256, Bytes),
    ) -> (Box<Exec>, InterpreterResult);
}

/// A transaction being run.
pub(crate) struct Exec {
    pub config: Config,
    pub callees: Arc<dyn Callees>,
    pub ctx: Ctx,
    pub block: Block,
    pub origin: Address,
    pub offered: u128,
    /// Frames open per acting account, delegate calls aside: more than one is re-entry.
    pub acting: HashMap<Address, u32>,
    /// Callers of the open frames, outermost first.
    pub callers: Vec<Address>,
    /// Pages all open programs have.
    pub pages_open: u16,
    /// The most there have been.
    pub pages_ever: u16,
    /// Why the last frame that ended in [`InstructionResult::PrecompileError`] did.
    pub reason: Option<String>,
    /// The last opcode that isn't one.
    pub opcode: u8,
    pub stylus: Vec<StylusFrame>,
    pub tracer: Option<Tracer>,
    /// When it is given up. A transaction in a block never is: its gas bounds it, and every node must find the same.
    deadline: Option<Deadline>,
    /// Whether it was given up: all that it did since is void.
    overdue: bool,
}

/// An end of work on this thread, by the processor's time that it takes: other programs at work end no call.
#[derive(Clone, Copy, Debug)]
struct Deadline {
    /// It isn't over before, and to ask for this costs less.
    passes: Instant,
    worked: Duration,
}

impl Deadline {
    fn new(limit: Duration) -> Self {
        Self { passes: Instant::now() + limit, worked: worked() + limit }
    }

    fn is_over(self) -> bool {
        Instant::now() >= self.passes && worked() >= self.worked
    }
}

/// The processor's time that this thread has taken.
fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// revm's rules of an ArbOS version.
pub(crate) fn spec(arbos: u64) -> SpecId {
    match arbos {
        50.. => SpecId::OSAKA,
        40.. => SpecId::PRAGUE,
        _ => SpecId::CANCUN,
    }
}

/// Ethereum's precompiles of an ArbOS version.
fn eth_precompiles(arbos: u64) -> &'static Precompiles {
    static EARLY: OnceLock<Precompiles> = OnceLock::new();
    match arbos {
        50.. => Precompiles::new(PrecompileSpecId::OSAKA),
        // Before ArbOS 50 there were Cancun's and secp256r1.
        _ => EARLY.get_or_init(|| {
            let mut set = Precompiles::cancun().clone();
            set.extend([revm::precompile::secp256r1::P256VERIFY]);
            set
        }),
    }
}

/// Whether there is a precompile in any version.
pub(crate) fn is_precompile(address: &Address) -> bool {
    warm_addresses(*ARBOS_VERSIONS.end()).contains(address)
}

/// All precompiles, which are warm from the start.
fn warm_addresses(arbos: u64) -> &'static AddressSet {
    static SETS: OnceLock<[AddressSet; 2]> = OnceLock::new();
    let sets = SETS.get_or_init(|| {
        [40, 50].map(|version| {
            let mut set = eth_precompiles(version).addresses_set().clone();
            set.extend(ADDRESSES);
            set
        })
    });
    &sets[usize::from(arbos >= 50)]
}

fn instructions(spec: SpecId) -> &'static EthInstructions<EthInterpreter, Ctx> {
    static TABLES: OnceLock<[EthInstructions<EthInterpreter, Ctx>; 3]> = OnceLock::new();
    let tables = TABLES.get_or_init(|| {
        [SpecId::CANCUN, SpecId::PRAGUE, SpecId::OSAKA].map(|spec| {
            let mut table = EthInstructions::new_mainnet_with_spec(spec);
            use revm::bytecode::opcode;
            let instructions = table.instruction_table_mut();
            instructions[usize::from(opcode::SELFDESTRUCT)] = Instruction::new(selfdestruct);
            // There are no blobs on Arbitrum.
            instructions[usize::from(opcode::BLOBBASEFEE)] = Instruction::new(|_| Err(InstructionResult::NotActivated));
            table
        })
    });
    match spec {
        SpecId::CANCUN => &tables[0],
        SpecId::PRAGUE => &tables[1],
        _ => &tables[2],
    }
}

/// SELFDESTRUCT, which reverts where the acting account is a Stylus program (reached by a delegate call); its gas is
/// taken all the same.
fn selfdestruct(context: InstructionContext<'_, Ctx, EthInterpreter>) -> Result<(), InstructionResult> {
    let acting = context.interpreter.input.target_address;
    let journal = &mut context.host.journaled_state;
    if !context.interpreter.runtime_flag.is_static && stylus::is_component(&never(journal.code(acting)).data, u64::MAX) {
        let target = context.interpreter.stack.pop().map_err(|_| InstructionResult::StackUnderflow)?;
        let rich = !never(journal.load_account(acting)).data.info.balance.is_zero();
        let account = never(journal.load_account(Address::from_word(target.into())));
        let (new, is_cold) = (rich && account.data.is_empty(), account.is_cold);
        let cost = context.host.cfg.gas_params.selfdestruct_cost(new, is_cold);
        let paid = context.interpreter.gas.record_regular_cost(cost);
        return Err(if paid { InstructionResult::Revert } else { InstructionResult::OutOfGas });
    }
    revm::interpreter::instructions::host::selfdestruct(context)
}

fn never<T>(result: Result<T, Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(e) => match e {},
    }
}

pub(crate) fn transact(
    config: &Config,
    callees: &Arc<dyn Callees>,
    state: &mut State,
    block: &BlockCtx,
    tx: &TxCtx,
    limit: Duration,
) -> Result<Outcome, TxError> {
    let upfront = check(config, state, block, tx)?;
    let spec = spec(config.arbos);
    let (intrinsic, floor) = fixed_gas(state, tx, spec)?;

    let mut exec = open(config, callees, state.clone(), block, tx, spec);
    // A copy waits for its endpoint, which has limits of its own.
    if (tx.is_call || tx.trace != TraceRequest::Nothing) && !state.is_copy() {
        exec.deadline = Some(Deadline::new(limit));
    }
    let journal = &mut exec.ctx.journaled_state;
    // ArbOS reads and writes its own storage throughout; its account stays although it has no balance.
    never(journal.load_account(ARBOS_STATE));
    journal.touch_account(ARBOS_STATE);
    {
        let mut caller = never(journal.load_account_with_code_mut(tx.caller)).data;
        let balance = *caller.balance();
        caller.set_balance(balance - upfront);
        if tx.to.is_some() {
            caller.bump_nonce();
        }
    }

    let set_code = set_codes(&mut exec, tx);
    let mut gas_left = tx.gas_limit - intrinsic;
    let mut held = 0;
    if !tx.is_call || tx.is_estimate {
        let max = if config.arbos >= 50 { MAX_TX_GAS.saturating_sub(intrinsic) } else { MAX_TX_GAS };
        held = gas_left.saturating_sub(max);
        gas_left -= held;
    }

    let memory = SharedMemory::new_with_buffer(exec.ctx.local.shared_memory_buffer().clone());
    let input = first_frame(&mut exec, tx, gas_left);
    let (mut exec, result) = frame(exec, FrameInit { depth: 0, memory, frame_input: input });
    if exec.overdue {
        return Err(TxError::TimedOut(limit));
    }
    let created = match &result {
        FrameResult::Create(outcome) if result.instruction_result().is_ok() => outcome.address,
        _ => None,
    };
    let result = result.into_interpreter_result();
    let kind = result.result;
    let remaining = if kind.is_ok_or_revert() { result.gas.remaining() } else { 0 } + held;
    let used = tx.gas_limit - remaining;
    let cleared = if kind.is_ok() { result.gas.refunded().max(0) as u64 } else { 0 };
    let refund = (cleared + set_code).min(used / 5);
    let gas_used = (used - refund).max(floor);

    let price = U256::from(tx.gas_price);
    let journal = &mut exec.ctx.journaled_state;
    if !price.is_zero() {
        never(journal.balance_incr(tx.caller, price * U256::from(tx.gas_limit - gas_used)));
        never(journal.balance_incr(NETWORK_FEE_ACCOUNT, price * U256::from(gas_used)));
    }
    let logs = if kind.is_ok() { journal.take_logs() } else { vec![] };
    let status = match kind {
        k if k.is_ok() => Status::Success,
        InstructionResult::Revert => Status::Revert,
        k => Status::Halt(exec.describe(k)),
    };
    let trace = match exec.tracer.take() {
        Some(tracer) => tracer.finish(Totals {
            gas_limit: tx.gas_limit,
            gas_used,
            refund,
            floor: gas_used - (used - refund),
            intrinsic: split_intrinsic(tx, intrinsic),
        }),
        None if tx.trace == TraceRequest::Accessed => Trace::Accessed(accessed(&exec, tx)),
        None => Trace::Nothing,
    };
    let stylus = std::mem::take(&mut exec.stylus);
    let changes = exec.ctx.journaled_state.finalize();
    let mut next = exec.ctx.journaled_state.database;
    next.commit(changes);
    *state = next;
    let output = if kind.is_ok_or_revert() { result.output } else { Bytes::new() };
    Ok(Outcome { status, output, gas_used, gas_refunded: refund, logs, created, trace, stylus })
}

/// Lets accounts set their code (EIP-7702). Gives the gas to be given back for those that existed.
fn set_codes(exec: &mut Exec, tx: &TxCtx) -> u64 {
    if tx.authorizations.is_empty() {
        return 0;
    }
    let journal = &mut exec.ctx.journaled_state;
    let list = tx.authorizations.iter();
    let existed = apply_auth_list::<_, EVMError<Infallible>>(exec.config.chain_id, list, journal);
    let per_account = exec.ctx.cfg.gas_params.tx_eip7702_auth_refund_regular();
    // The state in memory has no errors, and nothing else fails.
    existed.unwrap_or_default().saturating_mul(per_account)
}

/// The cost of a transaction before anything runs, by its parts.
fn split_intrinsic(tx: &TxCtx, whole: u64) -> Intrinsic {
    let zeros = tx.data.iter().filter(|byte| **byte == 0).count() as u64;
    let calldata = 4 * zeros + 16 * (tx.data.len() as u64 - zeros);
    Intrinsic { base: TX_BASE, calldata, other: whole.saturating_sub(TX_BASE + calldata) }
}

/// The accounts and slots that the frames touched, undone or not.
fn accessed(exec: &Exec, tx: &TxCtx) -> Vec<Accessed> {
    let mut list = vec![];
    for (address, account) in &exec.ctx.journaled_state.inner.state {
        if *address == ARBOS_STATE {
            continue;
        }
        let known = *address == tx.caller || Some(*address) == tx.to || account.is_created();
        let warm = account.storage.is_empty() && (known || exec.is_precompile(*address));
        let mut slots: Vec<B256> = account.storage.keys().map(|slot| B256::from(*slot)).collect();
        slots.sort_unstable();
        list.push(Accessed { address: *address, slots, warm });
    }
    list.sort_unstable_by_key(|account| account.address);
    list
}

/// The checks before inclusion, in geth's order. Returns the wei for all gas.
fn check(config: &Config, state: &State, block: &BlockCtx, tx: &TxCtx) -> Result<U256, TxError> {
    let address = tx.caller;
    let nonce = state.nonce(address);
    match tx.nonce {
        Some(tx) if tx < nonce => return Err(TxError::NonceTooLow { address, tx, state: nonce }),
        Some(tx) if tx > nonce => return Err(TxError::NonceTooHigh { address, tx, state: nonce }),
        _ => {}
    }
    check_sender(config, state, tx)?;
    if tx.gas_price < block.base_fee && !(tx.is_call && tx.gas_price == 0) {
        return Err(TxError::FeeCapTooLow { address, max_fee: tx.gas_price, base_fee: block.base_fee });
    }
    let gas = U256::from(tx.gas_limit) * U256::from(tx.gas_price);
    let want = gas.checked_add(tx.value).ok_or(TxError::Overflow)?;
    let have = state.balance(address);
    if want > have {
        return Err(TxError::InsufficientFunds { address, have, want });
    }
    Ok(gas)
}

/// The checks whose outcome waiting does not change.
pub(crate) fn check_lasting(config: &Config, state: &State, tx: &TxCtx) -> Result<(), TxError> {
    check_sender(config, state, tx)?;
    fixed_gas(state, tx, spec(config.arbos)).map(drop)
}

/// Whether an account may send, by this nonce.
fn check_sender(config: &Config, state: &State, tx: &TxCtx) -> Result<(), TxError> {
    let address = tx.caller;
    if tx.nonce.unwrap_or_else(|| state.nonce(address)) == u64::MAX {
        return Err(TxError::NonceMax { address, nonce: u64::MAX });
    }
    let code = state.code(address);
    let delegated = config.arbos >= 40 && code.starts_with(&[0xef, 0x01, 0x00]);
    if !(tx.is_call || code.is_empty() || delegated) {
        return Err(TxError::SenderNotEoa { address, code_hash: state.code_hash(address) });
    }
    Ok(())
}

/// The intrinsic and the least cost of a transaction, both covered by its limit, and its init code within EIP-3860.
fn fixed_gas(state: &State, tx: &TxCtx, spec: SpecId) -> Result<(u64, u64), TxError> {
    let costs = (intrinsic_gas(tx, spec)?, floor_gas(state, tx, spec)?);
    if tx.to.is_none() && tx.data.len() > 2 * MAX_CODE_SIZE {
        return Err(TxError::InitCodeTooLarge { size: tx.data.len(), limit: 2 * MAX_CODE_SIZE });
    }
    Ok(costs)
}

/// The cost of a transaction before anything runs.
fn intrinsic_gas(tx: &TxCtx, spec: SpecId) -> Result<u64, TxError> {
    let slots = tx.access_list.iter().map(|(_, slots)| slots.len() as u64).sum();
    let want = GasParams::new_spec(spec)
        .initial_tx_gas(&tx.data, tx.to.is_none(), tx.access_list.len() as u64, slots, tx.authorizations.len() as u64, None)
        .initial_total_gas();
    if tx.gas_limit < want {
        return Err(TxError::IntrinsicGas { have: tx.gas_limit, want });
    }
    Ok(want)
}

/// The least cost of a transaction (EIP-7623). Nothing, unless a chain owner has switched the floor on.
fn floor_gas(state: &State, tx: &TxCtx, spec: SpecId) -> Result<u64, TxError> {
    if !spec.is_enabled_in(SpecId::PRAGUE) || !state.storage(ARBOS_STATE, Number::CalldataFloor.slot()).bit(0) {
        return Ok(0);
    }
    let zeros = tx.data.iter().filter(|byte| **byte == 0).count() as u64;
    let want = TX_BASE + 10 * (zeros + 4 * (tx.data.len() as u64 - zeros));
    if tx.gas_limit < want {
        return Err(TxError::FloorGas { have: tx.gas_limit, want });
    }
    Ok(want)
}

fn open(config: &Config, callees: &Arc<dyn Callees>, state: State, block: &BlockCtx, tx: &TxCtx, spec: SpecId) -> Box<Exec> {
    let mut cfg = CfgEnv::new_with_spec_and_gas_params(spec, GasParams::new_spec(spec));
    cfg.chain_id = config.chain_id;
    cfg.disable_eip3541 = true;
    // A call that pays nothing sees a base fee of nothing; ArbGasInfo tells the block's.
    let base_fee = if tx.is_call && tx.gas_price == 0 { 0 } else { block.base_fee };
    let mut ctx: Ctx = Context::new(state, spec);
    ctx.cfg = cfg;
    ctx.journaled_state.set_spec_id(spec);
    ctx.block = BlockEnv {
        number: U256::from(block.l1_number),
        beneficiary: block.coinbase,
        timestamp: U256::from(block.timestamp),
        gas_limit: block.gas_limit,
        basefee: u64::try_from(base_fee).unwrap_or(u64::MAX),
        difficulty: U256::ONE,
        prevrandao: Some(block.prevrandao),
        blob_excess_gas_and_price: None,
        slot_num: 0,
    };
    // The interpreter asks for these two only; everything else is checked above.
    ctx.tx.caller = tx.caller;
    ctx.tx.gas_price = tx.gas_price;

    let journal = &mut ctx.journaled_state;
    journal.warm_precompiles(warm_addresses(config.arbos));
    journal.warm_coinbase_account(block.coinbase);
    if !tx.access_list.is_empty() {
        let mut list = revm::primitives::AddressMap::<revm::primitives::HashSet<U256>>::default();
        for (address, slots) in &tx.access_list {
            list.entry(*address).or_default().extend(slots.iter().map(|s| U256::from_be_bytes(s.0)));
        }
        journal.warm_access_list(list);
    }
    Box::new(Exec {
        config: config.clone(),
        callees: callees.clone(),
        ctx,
        block: Block {
            l2_number: block.l2_number,
            l1_number: block.l1_number,
            timestamp: block.timestamp,
            base_fee,
            base_fee_in_block: block.base_fee,
            gas_limit: block.gas_limit,
            coinbase: block.coinbase,
            hashes: block.recent_hashes.to_vec(),
            moved: block.moved_precompiles.to_vec(),
        },
        origin: tx.caller,
        offered: tx.offered,
        acting: HashMap::new(),
        callers: vec![],
        pages_open: 0,
        pages_ever: 0,
        reason: None,
        opcode: 0,
        stylus: vec![],
        tracer: Tracer::new(tx.trace),
        deadline: None,
        overdue: false,
    })
}

fn first_frame(exec: &mut Exec, tx: &TxCtx, gas: u64) -> FrameInput {
    match tx.to {
        None => {
            FrameInput::Create(Box::new(CreateInputs::new(tx.caller, CreateScheme::Create, tx.value, tx.data.clone(), gas, 0)))
        }
        Some(to) => FrameInput::Call(Box::new(CallInputs {
            input: CallInput::Bytes(tx.data.clone()),
            return_memory_offset: 0..0,
            gas_limit: gas,
            reservoir: 0,
            bytecode_address: to,
            known_bytecode: {
                // The recipient is warm from the start, and so is the target of its delegation.
                let code = never(exec.ctx.journaled_state.load_account_with_code(to)).data.info.code.clone();
                if let Some(target) = code.as_ref().and_then(Bytecode::eip7702_address) {
                    never(exec.ctx.journaled_state.load_account(target));
                }
                exec.code_to_run(to)
            },
            target_address: to,
            caller: tx.caller,
            value: CallValue::Transfer(tx.value),
            scheme: CallScheme::Call,
            is_static: false,
            charged_new_account_state_gas: false,
        })),
    }
}

impl Exec {
    /// geth's words for a failure.
    fn describe(&self, result: InstructionResult) -> String {
        use InstructionResult as R;
        match result {
            R::PrecompileError => return self.reason.clone().unwrap_or_else(|| "precompile failed".into()),
            R::Revert => "execution reverted",
            R::CallTooDeep => "max call depth exceeded",
            R::OutOfFunds => "insufficient balance for transfer",
            R::OutOfGas | R::MemoryOOG | R::MemoryLimitOOG | R::PrecompileOOG | R::InvalidOperandOOG | R::ReentrancySentryOOG => {
                "out of gas"
            }
            R::InvalidFEOpcode => "invalid opcode: INVALID",
            R::OpcodeNotFound => return format!("invalid opcode: opcode {:#x} not defined", self.opcode),
            R::NotActivated => "invalid opcode: not supported by this version",
            R::CallNotAllowedInsideStatic | R::StateChangeDuringStaticCall => "write protection",
            R::InvalidJump => "invalid jump destination",
            R::StackUnderflow => "stack underflow",
            R::StackOverflow => "stack limit reached 1024 (1023)",
            R::OutOfOffset => "return data out of bounds",
            R::CreateCollision => "contract address collision",
            R::CreateContractSizeLimit => "max code size exceeded",
            R::CreateContractStartingWithEF => "invalid code: must not begin with 0xef",
            R::CreateInitCodeSizeLimit => "max initcode size exceeded",
            R::NonceOverflow => "nonce uint64 overflow",
            other => return format!("{other:?}"),
        }
        .to_owned()
    }

    /// Code that runs at an address and its hash; an EIP-7702 delegation is followed once, which doesn't warm its target.
    pub(crate) fn code_to_run(&mut self, address: Address) -> (B256, Bytecode) {
        let (hash, code) = self.peek_code(address);
        match code.eip7702_address() {
            Some(target) if self.config.arbos >= 40 => {
                if self.config.arbos >= 50 && self.is_precompile(target) {
                    return (KECCAK_EMPTY, Bytecode::default());
                }
                self.peek_code(target)
            }
            _ => (hash, code),
        }
    }

    /// An account, without a trace in the access list.
    pub(crate) fn peek(&mut self, address: Address) -> AccountInfo {
        let journal = &mut self.ctx.journaled_state;
        match journal.inner.state.get(&address) {
            Some(account) => account.info.clone(),
            None => never(journal.database.basic(address)).unwrap_or_default(),
        }
    }

    /// An account's code and its hash, without a trace in the access list.
    pub(crate) fn peek_code(&mut self, address: Address) -> (B256, Bytecode) {
        let info = self.peek(address);
        let journal = &mut self.ctx.journaled_state;
        let code = match info.code {
            Some(code) => code,
            None => never(journal.database.code_by_hash(info.code_hash)),
        };
        (info.code_hash, code)
    }

    /// Whether a call to the address runs a precompile.
    pub(crate) fn is_precompile(&self, address: Address) -> bool {
        self.precompile_at(address).is_some()
    }

    /// The precompile a call to the address runs, by its usual address.
    fn precompile_at(&self, address: Address) -> Option<Address> {
        let mut usual = address;
        for (now, before) in &self.block.moved {
            if *now == address {
                usual = *before;
                break;
            }
            if *before == address {
                return None;
            }
        }
        let known = ADDRESSES.contains(&usual) || eth_precompiles(self.config.arbos).contains(&usual);
        known.then_some(usual)
    }

    /// Whether the time for it is over. Looked at where work begins that gas bounds loosely, or not at all.
    pub(crate) fn is_overdue(&mut self) -> bool {
        self.overdue = self.overdue || self.deadline.is_some_and(|deadline| deadline.is_over());
        self.overdue
    }

    /// One word of ArbOS's own storage.
    pub(crate) fn arbos_load(&mut self, slot: U256) -> U256 {
        never(self.ctx.journaled_state.sload(ARBOS_STATE, slot)).data
    }

    /// Writes one word of ArbOS's own storage. Undone with the frame.
    pub(crate) fn arbos_store(&mut self, slot: U256, value: U256) {
        never(self.ctx.journaled_state.sstore(ARBOS_STATE, slot, value));
    }
}

/// Opens a frame, runs it and everything below it.
pub(crate) fn frame(exec: Box<Exec>, init: FrameInit) -> (Box<Exec>, FrameResult) {
    stacker::maybe_grow(FRAME_STACK, STACK_CHUNK, || {
        let FrameInit { depth, memory, frame_input } = init;
        match frame_input {
            FrameInput::Call(inputs) => {
                let (exec, outcome) = call(exec, depth, memory, inputs);
                (exec, FrameResult::Call(outcome))
            }
            FrameInput::Create(inputs) => {
                let (exec, outcome) = create(exec, depth, memory, inputs);
                (exec, FrameResult::Create(outcome))
            }
            FrameInput::Empty => unreachable!("revm opens call and create frames only"),
        }
    })
}

fn call(mut exec: Box<Exec>, depth: usize, memory: SharedMemory, inputs: Box<CallInputs>) -> (Box<Exec>, CallOutcome) {
    let offset = inputs.return_memory_offset.clone();
    if exec.tracer.is_some() {
        let input = inputs.input.bytes(&exec.ctx);
        let logs = exec.ctx.journaled_state.logs().len();
        let (kind, to) = match inputs.scheme {
            CallScheme::Call => (CallKind::Call, inputs.target_address),
            CallScheme::CallCode => (CallKind::CallCode, inputs.bytecode_address),
            CallScheme::DelegateCall => (CallKind::DelegateCall, inputs.bytecode_address),
            CallScheme::StaticCall => (CallKind::StaticCall, inputs.target_address),
        };
        let from = if kind == CallKind::DelegateCall { inputs.target_address } else { inputs.caller };
        let value = match kind {
            CallKind::StaticCall => None,
            _ => Some(inputs.call_value()),
        };
        if let Some(tracer) = &mut exec.tracer {
            tracer.enter(Entered { kind, from, to: Some(to), value, gas: inputs.gas_limit, input, logs });
        }
    }
    let (mut exec, result) = run_call(exec, depth, memory, inputs);
    exec.trace_exit(&result, None);
    let outcome = CallOutcome {
        result,
        memory_offset: offset,
        was_precompile_called: false,
        precompile_call_logs: vec![],
        charged_new_account_state_gas: false,
    };
    (exec, outcome)
}

impl Exec {
    fn trace_exit(&mut self, result: &InterpreterResult, created: Option<Address>) {
        if self.tracer.is_some() {
            let kind = result.result;
            let used = if kind.is_ok_or_revert() {
                result.gas.limit().saturating_sub(result.gas.remaining())
            } else {
                result.gas.limit()
            };
            let error = (!kind.is_ok()).then(|| self.describe(kind));
            let output = if kind.is_ok_or_revert() { result.output.clone() } else { Bytes::new() };
            if let Some(tracer) = &mut self.tracer {
                tracer.exit(Left { gas_used: used, output, error, created }, self.ctx.journaled_state.logs());
            }
        }
    }
}

pub(crate) fn finish(kind: InstructionResult, gas: Gas) -> InterpreterResult {
    InterpreterResult { result: kind, output: Bytes::new(), gas }
}

fn run_call(
    mut exec: Box<Exec>,
    depth: usize,
    memory: SharedMemory,
    mut inputs: Box<CallInputs>,
) -> (Box<Exec>, InterpreterResult) {
    let gas = Gas::new(inputs.gas_limit);
    if exec.is_overdue() {
        return (exec, finish(InstructionResult::OutOfGas, gas));
    }
    if depth > MAX_DEPTH {
        return (exec, finish(InstructionResult::CallTooDeep, gas));
    }
    let checkpoint = exec.ctx.journaled_state.checkpoint();
    if let CallValue::Transfer(value) = inputs.value {
        let journal = &mut exec.ctx.journaled_state;
        if let Some(error) = never(journal.transfer(inputs.caller, inputs.target_address, value)) {
            journal.checkpoint_revert(checkpoint);
            return (exec, finish(error.into(), gas));
        }
    }

    let code_address = inputs.bytecode_address;
    let precompile = exec.precompile_at(code_address);
    let eth_precompile = precompile.and_then(|address| eth_precompiles(exec.config.arbos).get(&address));
    let result = if let Some(precompile) = eth_precompile {
        let input = inputs.input.bytes(&exec.ctx);
        match precompile.execute(&input, inputs.gas_limit, 0) {
            Ok(output) => revm::handler::precompile_output_to_interpreter_result(output, inputs.gas_limit),
            Err(error) => {
                exec.reason = Some(error.to_string());
                finish(InstructionResult::PrecompileError, gas)
            }
        }
    } else if let Some(address) = precompile {
        let input = inputs.input.bytes(&exec.ctx);
        let callees = exec.callees.clone();
        callees.precompile(&mut exec, depth, address, &inputs, &input)
    } else {
        let (hash, code) = std::mem::take(&mut inputs.known_bytecode);
        if code.is_empty() {
            exec.ctx.journaled_state.checkpoint_commit();
            return (exec, finish(InstructionResult::Stop, gas));
        }
        let delegate = matches!(inputs.scheme, CallScheme::DelegateCall | CallScheme::CallCode);
        let acting = inputs.target_address;
        if !delegate {
            *exec.acting.entry(acting).or_default() += 1;
        }
        exec.callers.push(inputs.caller);
        let result;
        if stylus::is_program(code.original_byte_slice(), exec.config.arbos) {
            let callees = exec.callees.clone();
            (exec, result) = callees.program(exec, depth, memory, &inputs, (hash, code.original_bytes()));
        } else {
            let interpreter_inputs = InputsImpl {
                target_address: acting,
                caller_address: inputs.caller,
                bytecode_address: Some(code_address),
                input: inputs.input.clone(),
                call_value: inputs.value.get(),
                depth,
            };
            let mut evm_frame = EthFrame::<EthInterpreter>::invalid();
            let (is_static, gas_limit) = (inputs.is_static, inputs.gas_limit);
            evm_frame.clear(
                FrameData::Call(RevmCall { return_memory_range: inputs.return_memory_offset.clone() }),
                FrameInput::Call(inputs),
                depth,
                memory,
                ExtBytecode::new_with_hash(code, hash),
                interpreter_inputs,
                is_static,
                exec.ctx.cfg.spec,
                gas_limit,
                0,
                checkpoint,
            );
            (exec, result) = interpret(exec, evm_frame, depth);
        }
        exec.callers.pop();
        if !delegate {
            if let Some(open) = exec.acting.get_mut(&acting) {
                *open -= 1;
            }
        }
        result
    };

    if result.result.is_ok() {
        exec.ctx.journaled_state.checkpoint_commit();
    } else {
        exec.ctx.journaled_state.checkpoint_revert(checkpoint);
    }
    (exec, result)
}

fn create(mut exec: Box<Exec>, depth: usize, memory: SharedMemory, inputs: Box<CreateInputs>) -> (Box<Exec>, CreateOutcome) {
    if exec.tracer.is_some() {
        let logs = exec.ctx.journaled_state.logs().len();
        let kind = match inputs.scheme() {
            CreateScheme::Create2 { .. } => CallKind::Create2,
            _ => CallKind::Create,
        };
        if let Some(tracer) = &mut exec.tracer {
            tracer.enter(Entered {
                kind,
                from: inputs.caller(),
                to: None,
                value: Some(inputs.value()),
                gas: inputs.gas_limit(),
                input: inputs.init_code().clone(),
                logs,
            });
        }
    }
    let (mut exec, result, address) = run_create(exec, depth, memory, inputs);
    exec.trace_exit(&result, address);
    (exec, CreateOutcome { result, address, charged_create_state_gas: false })
}

fn run_create(
    mut exec: Box<Exec>,
    depth: usize,
    memory: SharedMemory,
    inputs: Box<CreateInputs>,
) -> (Box<Exec>, InterpreterResult, Option<Address>) {
    let gas = Gas::new(inputs.gas_limit());
    if exec.is_overdue() {
        return (exec, finish(InstructionResult::OutOfGas, gas), None);
    }
    if depth > MAX_DEPTH {
        return (exec, finish(InstructionResult::CallTooDeep, gas), None);
    }
    let spec = exec.ctx.cfg.spec;
    let journal = &mut exec.ctx.journaled_state;
    let old_nonce = {
        let mut caller = never(journal.load_account_mut(inputs.caller()));
        if *caller.balance() < inputs.value() {
            return (exec, finish(InstructionResult::OutOfFunds, gas), None);
        }
        let old = caller.nonce();
        if !caller.bump_nonce() {
            return (exec, finish(InstructionResult::NonceOverflow, gas), None);
        }
        old
    };
    let address = inputs.created_address(old_nonce);
    never(journal.load_account(address));
    let checkpoint = match journal.create_account_checkpoint(inputs.caller(), address, inputs.value(), spec) {
        Ok(checkpoint) => checkpoint,
        Err(error) => return (exec, finish(error.into(), gas), None),
    };

    let code = Bytecode::new_legacy(inputs.init_code().clone());
    let interpreter_inputs = InputsImpl {
        target_address: address,
        caller_address: inputs.caller(),
        bytecode_address: None,
        input: CallInput::Bytes(Bytes::new()),
        call_value: inputs.value(),
        depth,
    };
    *exec.acting.entry(address).or_default() += 1;
    exec.callers.push(inputs.caller());
    let gas_limit = inputs.gas_limit();
    let mut evm_frame = EthFrame::<EthInterpreter>::invalid();
    evm_frame.clear(
        FrameData::Create(RevmCreate { created_address: address }),
        FrameInput::Create(inputs),
        depth,
        memory,
        ExtBytecode::new(code),
        interpreter_inputs,
        false,
        spec,
        gas_limit,
        0,
        checkpoint,
    );
    let (mut exec, mut result) = interpret(exec, evm_frame, depth);
    exec.callers.pop();
    if let Some(open) = exec.acting.get_mut(&address) {
        *open -= 1;
    }

    // EIP-3541, except for Stylus deployments.
    if result.result.is_ok()
        && result.output.first() == Some(&0xef)
        && result.output.len() <= MAX_CODE_SIZE
        && !stylus::is_component(&result.output, exec.config.arbos)
    {
        result.result = InstructionResult::CreateContractStartingWithEF;
    }
    return_create(&mut exec.ctx, checkpoint, &mut result, address);
    (exec, result, Some(address))
}

/// Interprets EVM code to its end, running the frames it opens.
fn interpret(mut exec: Box<Exec>, mut evm_frame: EthFrame<EthInterpreter>, depth: usize) -> (Box<Exec>, InterpreterResult) {
    let table = instructions(exec.ctx.cfg.spec);
    let stepping = exec.tracer.as_ref().is_some_and(Tracer::wants_steps);
    loop {
        let interpreter = &mut evm_frame.interpreter;
        let mut opened = None;
        let action = if stepping {
            let (action, last) = run_in_steps(&mut exec, interpreter, table, depth);
            opened = Some(last);
            action
        } else {
            interpreter.run_plain(table.instruction_table(), table.gas_table(), &mut exec.ctx)
        };
        match action {
            InterpreterAction::Return(result) => {
                if matches!(result.result, InstructionResult::OpcodeNotFound | InstructionResult::InvalidFEOpcode) {
                    let at = interpreter.bytecode.pc().saturating_sub(1);
                    let opcode = interpreter.bytecode.original_byte_slice().get(at).copied().unwrap_or_default();
                    exec.opcode = opcode;
                }
                return (exec, result);
            }
            InterpreterAction::NewFrame(frame_input) => {
                let memory = interpreter.memory.new_child_context();
                let (next, result) = frame(exec, FrameInit { depth: depth + 1, memory, frame_input });
                exec = next;
                let merged: Result<(), ContextError<Infallible>> = evm_frame.return_result(&mut exec.ctx, result);
                if merged.is_err() {
                    unreachable!("the state in memory has no errors");
                }
                if let (Some((op, before)), Some(tracer)) = (opened, &mut exec.tracer) {
                    tracer.returned(op, before.saturating_sub(evm_frame.interpreter.gas.remaining()));
                }
            }
        }
    }
}

/// Interprets EVM code like `run_plain`, telling the tracer of every instruction. Gives the last one, and the gas there
/// was before it.
fn run_in_steps(
    exec: &mut Exec,
    interpreter: &mut Interpreter<EthInterpreter>,
    table: &EthInstructions<EthInterpreter, Ctx>,
    depth: usize,
) -> (InterpreterAction, (u8, u64)) {
    loop {
        let (op, gas) = (interpreter.bytecode.opcode(), interpreter.gas.remaining());
        if let Some(tracer) = &mut exec.tracer {
            let memory = &interpreter.memory;
            tracer.step(&Now {
                pc: interpreter.bytecode.pc(),
                op,
                gas,
                refund: interpreter.gas.refunded().max(0) as u64,
                depth: depth + 1,
                stack: interpreter.stack.data(),
                memory: &|| memory.context_memory().to_vec(),
                memory_len: memory.len(),
                return_data: &interpreter.return_data.0,
            });
        }
        let ended = interpreter.step(table.instruction_table(), table.gas_table(), &mut exec.ctx).err();
        let opens = matches!(interpreter.bytecode.action(), Some(InterpreterAction::NewFrame(_)));
        let failed = ended.filter(|kind| kind.is_halt() && interpreter.bytecode.action().is_none());
        exec.opcode = op;
        let error = failed.map(|kind| exec.describe(kind));
        if let Some(tracer) = &mut exec.tracer {
            let cost = gas.saturating_sub(interpreter.gas.remaining());
            tracer.stepped(Ended { op, cost, opens, stack: interpreter.stack.data(), error });
        }
        if let Some(kind) = ended {
            if interpreter.bytecode.action().is_none() {
                interpreter.halt(kind);
            }
            return (interpreter.take_next_action(), (op, gas));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_other_programs_take_is_no_time_of_a_call() {
        let limit = Duration::from_millis(50);
        let deadline = Deadline::new(limit);
        std::thread::sleep(2 * limit);
        assert!(!deadline.is_over());
        while !deadline.is_over() {
            assert!(deadline.passes.elapsed() < Duration::from_mins(1));
        }
    }
}
