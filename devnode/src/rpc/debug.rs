//! The `debug_` methods, and this node's own `muster_` ones.

use std::collections::BTreeMap;

use alloy_consensus::{Header, ReceiptEnvelope};
use alloy_eips::eip2718::Encodable2718;
use alloy_primitives::{Address, Bytes, B256, U256, U64};
use alloy_rlp::Encodable;
use alloy_rpc_types_eth::state::StateOverride;
use alloy_rpc_types_eth::{BlockId, BlockNumberOrTag, BlockOverrides, TransactionRequest};
use revm::bytecode::opcode::OpCode;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{json, Value};

use super::error::RpcError;
use super::failure::{args, Failure};
use super::params::Params;
use super::raw;
use crate::chain::{checked_trace, AccountView, CallError, Chain, MinedBlock, Touched};
use crate::evm::{CallFrame, Outcome, Status, Trace, TraceRequest};
use crate::trace::{Hostio, Step, StepOptions, MAX_TRACE};

/// The tracer, and its options.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TraceOptions {
    tracer: Option<String>,
    tracer_config: TracerConfig,
    // Of the struct logger.
    disable_stack: bool,
    disable_storage: bool,
    enable_memory: bool,
    enable_return_data: bool,
    limit: usize,
    // `debug_traceCall` only.
    state_overrides: Option<StateOverride>,
    block_overrides: Option<BlockOverrides>,
}

/// Settings of the tracers.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TracerConfig {
    // callTracer
    only_top_call: bool,
    with_log: bool,
    // prestateTracer
    diff_mode: bool,
    disable_code: bool,
    disable_storage: bool,
    include_empty: bool,
}

/// The tracers there are.
#[derive(Clone, Copy, Debug)]
enum Tracer {
    Calls { deep: bool, logs: bool },
    Steps(StepOptions),
    Prestate(TracerConfig),
    Stylus,
    Nothing,
}

impl TraceOptions {
    fn tracer(&self) -> Result<Tracer, RpcError> {
        let config = self.tracer_config;
        Ok(match self.tracer.as_deref() {
            None | Some("") => Tracer::Steps(StepOptions {
                stack: !self.disable_stack,
                memory: self.enable_memory,
                storage: !self.disable_storage,
                return_data: self.enable_return_data,
                limit: self.limit,
            }),
            Some("callTracer") => Tracer::Calls { deep: !config.only_top_call, logs: config.with_log },
            Some("prestateTracer") => Tracer::Prestate(config),
            Some("stylusTracer") => Tracer::Stylus,
            Some("noopTracer") => Tracer::Nothing,
            // cargo-stylus sends this unless it is told to use the native tracer. It does the same.
            Some(script) if is_cargo_stylus_script(script) => Tracer::Stylus,
            Some(script) if script.trim_start().starts_with('{') => {
                return Err(RpcError::refused("JavaScript tracers are not supported"));
            }
            Some(other) => {
                return Err(RpcError::refused(format!(
                    "tracer {other} is not supported: callTracer, prestateTracer, stylusTracer and noopTracer are, and \
                     without a name the struct logger"
                )));
            }
        })
    }
}

/// Whether a tracer is the script that cargo-stylus carries, whose result is that of `stylusTracer`.
fn is_cargo_stylus_script(script: &str) -> bool {
    let dense: String = script.split_whitespace().collect();
    dense.starts_with(r#"{"hostio":function(info){"#)
        && dense.ends_with(r#"nests:["call_contract","delegate_call_contract","static_call_contract"]}"#)
}

impl Tracer {
    fn request(self) -> TraceRequest {
        match self {
            Self::Calls { .. } => TraceRequest::Calls,
            Self::Steps(options) => TraceRequest::Steps(options),
            Self::Stylus => TraceRequest::Hostios,
            Self::Prestate(_) | Self::Nothing => TraceRequest::Nothing,
        }
    }

    fn show(self, outcome: Outcome) -> Result<Box<RawValue>, Failure> {
        let outcome = checked_trace(outcome)?;
        let shown = match (self, outcome.trace) {
            (Self::Calls { deep, logs }, Trace::Calls(frame)) => raw(&RpcFrame::new(*frame, deep, logs)),
            (Self::Steps(_), Trace::Steps(steps)) => raw(&json!({
                "gas": outcome.gas_used,
                "failed": outcome.status != Status::Success,
                "returnValue": outcome.output,
                "structLogs": steps.iter().map(RpcStep::new).collect::<Vec<_>>(),
            })),
            (Self::Stylus, Trace::Hostios(hostios)) => raw(&hostios.into_iter().map(RpcHostio::new).collect::<Vec<_>>()),
            (Self::Nothing, _) => raw(&json!({})),
            _ => Err(RpcError::internal("no trace was recorded")),
        };
        Ok(shown?)
    }
}

/// Runs one method.
pub(super) fn dispatch(chain: &Chain, method: &str, params: Params) -> Result<Box<RawValue>, Failure> {
    let mut p = params;
    let answer = match method {
        "debug_traceCall" => {
            args!(p, tx: req TransactionRequest, at: opt BlockId, options: opt TraceOptions);
            let (at, options) = (at.unwrap_or_default(), options.unwrap_or_default());
            let (state, block) = (options.state_overrides.as_ref(), options.block_overrides.as_ref());
            match options.tracer()? {
                Tracer::Prestate(config) => raw(&prestate(chain.touched_by_call(&tx, at, state, block)?, config)),
                tracer => Ok(tracer.show(chain.trace_call(&tx, at, state, block, tracer.request())?)?),
            }
        }
        "debug_traceTransaction" => {
            args!(p, hash: req B256, options: opt TraceOptions);
            match options.unwrap_or_default().tracer()? {
                Tracer::Prestate(config) => raw(&prestate(chain.touched(hash)?, config)),
                tracer => Ok(tracer.show(chain.trace_transaction(hash, tracer.request())?)?),
            }
        }
        "debug_traceBlockByNumber" => {
            args!(p, number: req BlockNumberOrTag, options: opt TraceOptions);
            raw(&trace_block(chain, number.into(), &options.unwrap_or_default())?)
        }
        "debug_traceBlockByHash" => {
            args!(p, hash: req B256, options: opt TraceOptions);
            raw(&trace_block(chain, hash.into(), &options.unwrap_or_default())?)
        }
        "debug_getRawBlock" => {
            args!(p, id: req BlockId);
            raw(&chain.block(id).map(|block| raw_block(&block)))
        }
        "debug_getRawHeader" => {
            args!(p, id: req BlockId);
            raw(&chain.block(id).map(|block| rlp(&block.header)))
        }
        "debug_getRawReceipts" => {
            args!(p, id: req BlockId);
            raw(&chain.block(id).map(|block| {
                let receipts = block.transactions.iter().map(|t| t.receipt.inner.clone().map_logs(|log| log.inner));
                receipts.map(|receipt: ReceiptEnvelope| receipt.encoded_2718().into()).collect::<Vec<Bytes>>()
            }))
        }
        "muster_gasProfile" => {
            args!(p, hash: req B256);
            match chain.trace_transaction(hash, TraceRequest::Profile)?.trace {
                Trace::Profile(profile) => raw(&profile),
                _ => Err(RpcError::internal("no profile was recorded")),
            }
        }
        other => Err(RpcError::method_not_found(other)),
    };
    Ok(answer?)
}

fn rlp(value: &impl Encodable) -> Bytes {
    let mut out = Vec::new();
    value.encode(&mut out);
    out.into()
}

fn raw_block(block: &MinedBlock) -> Bytes {
    let transactions = block.transactions.iter().map(|t| t.tx.inner().clone()).collect();
    let body = alloy_consensus::BlockBody { transactions, ommers: Vec::<Header>::new(), withdrawals: None };
    rlp(&alloy_consensus::Block::new(block.header.clone(), body))
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TxTrace {
    tx_hash: B256,
    result: Box<RawValue>,
}

fn trace_block(chain: &Chain, id: BlockId, options: &TraceOptions) -> Result<Vec<TxTrace>, Failure> {
    let tracer = options.tracer()?;
    let mut traces: Vec<TxTrace> = Vec::new();
    let mut bytes = 0;
    let mut failure = None;
    let mut keep = |tx_hash, result: Result<Box<RawValue>, Failure>| {
        let kept = result.and_then(|result| {
            bytes += result.get().len();
            if bytes > MAX_TRACE {
                return Err(CallError::TraceTooLarge.into());
            }
            traces.push(TxTrace { tx_hash, result });
            Ok(())
        });
        // The chain's own errors have no room for this one.
        kept.map_err(|error| {
            failure = Some(error);
            CallError::TraceTooLarge
        })
    };
    let done = match tracer {
        Tracer::Prestate(config) => {
            chain.touched_by_block(id, |hash, touched| keep(hash, raw(&prestate(touched, config)).map_err(Failure::from)))
        }
        tracer => chain.trace_block(id, tracer.request(), |hash, outcome| keep(hash, tracer.show(outcome))),
    };
    match (done, failure) {
        (_, Some(failure)) => Err(failure),
        (Err(error), None) => Err(error.into()),
        (Ok(()), None) => Ok(traces),
    }
}

// ---- callTracer ----

/// A frame as go-ethereum's `callTracer` shows it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RpcFrame {
    from: Address,
    gas: U64,
    gas_used: U64,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<Address>,
    input: Bytes,
    #[serde(skip_serializing_if = "no_bytes")]
    output: Bytes,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    revert_reason: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    calls: Vec<RpcFrame>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logs: Vec<RpcFrameLog>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<U256>,
    #[serde(rename = "type")]
    kind: &'static str,
}

#[derive(Debug, Serialize)]
struct RpcFrameLog {
    address: Address,
    topics: Vec<B256>,
    data: Bytes,
    position: U64,
}

impl RpcFrame {
    /// `deep` shows inner frames, `logs` events.
    fn new(frame: CallFrame, deep: bool, logs: bool) -> Self {
        let shown_logs = if logs { frame.logs } else { Vec::new() };
        let calls = if deep { frame.calls } else { Vec::new() };
        Self {
            from: frame.from,
            gas: U64::from(frame.gas),
            gas_used: U64::from(frame.gas_used),
            to: frame.to,
            input: frame.input,
            output: frame.output,
            error: frame.error,
            revert_reason: frame.revert_reason,
            calls: calls.into_iter().map(|c| Self::new(c, deep, logs)).collect(),
            logs: shown_logs
                .into_iter()
                .map(|l| RpcFrameLog { address: l.address, topics: l.topics, data: l.data, position: U64::from(l.position) })
                .collect(),
            value: frame.value,
            kind: frame.kind.name(),
        }
    }
}

fn no_bytes(bytes: &Bytes) -> bool {
    bytes.is_empty()
}

// ---- struct logger ----

/// An instruction as go-ethereum's struct logger shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RpcStep<'a> {
    pc: usize,
    op: &'static str,
    gas: u64,
    gas_cost: u64,
    depth: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stack: Option<&'a [U256]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    return_data: Option<&'a Bytes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Vec<B256>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "is_zero")]
    refund: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl<'a> RpcStep<'a> {
    fn new(step: &'a Step) -> Self {
        let word = |word: &U256| format!("{word:064x}");
        Self {
            pc: step.pc,
            op: OpCode::new(step.op).map_or("INVALID", |op| op.as_str()),
            gas: step.gas,
            gas_cost: step.cost,
            depth: step.depth,
            error: step.error.as_deref(),
            stack: step.stack.as_deref(),
            return_data: step.return_data.as_ref().filter(|data| !data.is_empty()),
            memory: step.memory.as_ref().map(|bytes| bytes.chunks(32).map(B256::right_padding_from).collect()),
            storage: step.storage.as_ref().map(|slots| slots.iter().map(|(k, v)| (word(k), word(v))).collect()),
            refund: step.refund,
        }
    }
}

// ---- stylusTracer ----

/// A host call as Nitro's `stylusTracer` shows it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RpcHostio {
    name: String,
    args: Bytes,
    outs: Bytes,
    start_ink: u64,
    end_ink: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<Address>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steps: Option<Vec<RpcHostio>>,
}

impl RpcHostio {
    fn new(hostio: Hostio) -> Self {
        Self {
            name: hostio.name,
            args: hostio.args,
            outs: hostio.outs,
            start_ink: hostio.start_ink,
            end_ink: hostio.end_ink,
            address: hostio.address,
            steps: hostio.steps.map(|steps| steps.into_iter().map(Self::new).collect()),
        }
    }
}

// ---- prestateTracer ----

/// Accounts as go-ethereum's `prestateTracer` shows them; with `diffMode` only what changed, before and after.
fn prestate(touched: Touched, config: TracerConfig) -> Value {
    let shown = |view: &AccountView| {
        let mut account = serde_json::Map::new();
        account.insert("balance".into(), json!(view.balance));
        if view.nonce > 0 {
            account.insert("nonce".into(), json!(view.nonce));
        }
        if !view.code.is_empty() && !config.disable_code {
            account.insert("code".into(), json!(view.code));
        }
        if !view.storage.is_empty() && !config.disable_storage {
            account.insert("storage".into(), json!(view.storage));
        }
        account
    };
    let nothing = AccountView::default();
    if !config.diff_mode {
        let accounts = touched.before.iter().filter(|(address, view)| {
            // An account that the transaction itself created was nothing before.
            let created = **view == nothing && touched.after.get(*address).is_some_and(|after| !after.code.is_empty());
            config.include_empty || !created
        });
        return json!(accounts.map(|(address, view)| (address.to_string(), shown(view))).collect::<BTreeMap<_, _>>());
    }
    let (mut pre, mut post) = (BTreeMap::new(), BTreeMap::new());
    for (address, before) in &touched.before {
        let after = touched.after.get(address).unwrap_or(&nothing);
        if before == after {
            continue;
        }
        if *before != nothing {
            // Slots that stayed as they were say nothing.
            let mut before = before.clone();
            before.storage.retain(|slot, value| after.storage.get(slot) != Some(value));
            pre.insert(address.to_string(), shown(&before));
        }
        if *after != nothing {
            let mut changed = serde_json::Map::new();
            if after.balance != before.balance {
                changed.insert("balance".into(), json!(after.balance));
            }
            if after.nonce != before.nonce {
                changed.insert("nonce".into(), json!(after.nonce));
            }
            if after.code != before.code && !config.disable_code {
                changed.insert("code".into(), json!(after.code));
            }
            let slots: BTreeMap<_, _> =
                after.storage.iter().filter(|(slot, value)| before.storage.get(*slot) != Some(*value)).collect();
            if !slots.is_empty() && !config.disable_storage {
                changed.insert("storage".into(), json!(slots));
            }
            post.insert(address.to_string(), changed);
        }
    }
    json!({"pre": pre, "post": post})
}
