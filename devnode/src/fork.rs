//! Another chain at one of its blocks, read through an endpoint as it is needed.
//!
//! Reads happen in the middle of executions, where nothing can fail. A read that the endpoint does not answer gives nothing and is noted
//! for the thread. The code that began the work asks for such notes ([`checked`]) and throws the outcome away. Reads outside such work, as
//! of a [`crate::state::State`] in process, give nothing then, and say so on standard error.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use alloy_consensus::Header;
use alloy_primitives::{Address, Bytes, B256, U256};
use parking_lot::RwLock;
use revm::state::Bytecode;
use serde_json::{json, Value};

use crate::arbos::{Params, Slot, ARBOS_STATE, HISTORY_STORAGE};
use crate::endpoint::{read, Endpoint};
use crate::rpc::error::RpcError;

/// Code as revm runs it. A malformed EIP-7702 designator is ordinary code, as anywhere else.
pub(crate) fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

/// Most bytes kept of answers about the past.
const MAX_PAST: usize = 64 * 1024 * 1024;
/// Hashes of blocks, of either layer, that a block can see.
const HASHES: u64 = 256;

/// An account of the other chain.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub balance: U256,
    pub nonce: u64,
    pub code: Option<(B256, Bytecode)>,
}

/// Another chain at a block that stays the same.
pub struct Fork {
    endpoint: Endpoint,
    chain_id: u64,
    header: Header,
    hash: B256,
    hashes: Hashes,
    known: RwLock<Known>,
}

/// Earlier answers. They cannot change, since the block does not.
#[derive(Default)]
struct Known {
    accounts: HashMap<Address, Option<Account>>,
    words: HashMap<(Address, U256), U256>,
    /// Answers about the past by their questions, and their bytes in all.
    past: (HashMap<String, Value>, usize),
}

/// The values of BLOCKHASH and ArbSys.arbBlockHash in the block.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hashes {
    /// The value of `block.number`.
    pub number: u64,
    /// Newest first, from the number before it.
    pub l1: Vec<B256>,
    /// Newest first, from the block's parent.
    pub l2: Vec<B256>,
}

impl fmt::Debug for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hash, header, .. } = self;
        f.debug_struct("Fork")
            .field("url", &self.url())
            .field("block", &header.number)
            .field("hash", hash)
            .finish_non_exhaustive()
    }
}

impl Fork {
    /// Finds a block, the newest if none is named, and the data that every execution needs.
    ///
    /// # Errors
    /// In words: the endpoint does not answer, has no such block or no state of it, or is of no Arbitrum chain.
    pub fn connect(endpoint: Endpoint, block: Option<u64>) -> Result<Arc<Self>, String> {
        let wanted = block.map_or_else(|| json!("latest"), |number| json!(format!("{number:#x}")));
        let answers = endpoint.ask(&[("eth_chainId", json!([])), ("eth_getBlockByNumber", json!([wanted, false]))])?;
        let [chain_id, found] = answers.try_into().map_err(|_| "two questions, other answers")?;
        let chain_id: U256 = read(chain_id)?;
        if found.is_null() {
            return Err(format!("{} has no block {}", endpoint.name(), block.map_or_else(|| "at all".into(), |n| n.to_string())));
        }
        let block: alloy_rpc_types_eth::Header = read(found)?;
        let mut fork = Self {
            chain_id: chain_id.saturating_to(),
            hash: block.hash,
            header: block.inner,
            hashes: Hashes::default(),
            known: RwLock::default(),
            endpoint,
        };
        if fork.header.difficulty != U256::ONE || fork.arbos_version() == 0 {
            return Err(format!("{} is of no Arbitrum chain: only those can be copied", fork.url()));
        }
        checked(|| {
            fork.account(ARBOS_STATE);
            fork.account(HISTORY_STORAGE);
            fork.storage(ARBOS_STATE, Slot::Params.key())
        })
        .and_then(|params| match Params::unpack(params).version {
            0 => Err(format!("{} has no Stylus at block {}", fork.url(), fork.header.number)),
            _ => Ok(()),
        })?;
        fork.hashes = fork.visible_hashes()?;
        Ok(Arc::new(fork))
    }

    /// The endpoint, without the parts of its URL that may be secret.
    pub fn url(&self) -> &str {
        self.endpoint.name()
    }

    /// EIP-155 chain id of the other chain.
    pub fn chain_id(&self) -> u64 {
        self.chain_id
    }

    /// ArbOS version of the block.
    pub fn arbos_version(&self) -> u64 {
        self.header.mix_hash.0[16..24].iter().fold(0, |n, b| n << 8 | u64::from(*b))
    }

    /// Number of the block on whose state the copy begins.
    pub fn block_number(&self) -> u64 {
        self.header.number
    }

    /// Its hash.
    pub fn block_hash(&self) -> B256 {
        self.hash
    }

    /// Its time, in seconds since 1970.
    pub fn timestamp(&self) -> u64 {
        self.header.timestamp
    }

    /// Its base fee, in wei per gas.
    pub fn base_fee(&self) -> u64 {
        self.header.base_fee_per_gas.unwrap_or_default()
    }

    /// The endpoint itself.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// The value of `block.number` in the block.
    pub(crate) fn l1_number(&self) -> u64 {
        self.header.mix_hash.0[8..16].iter().fold(0, |n, b| n << 8 | u64::from(*b))
    }

    pub(crate) fn hashes(&self) -> &Hashes {
        &self.hashes
    }

    /// An account; `None` if there is none.
    pub(crate) fn account(&self, address: Address) -> Option<Account> {
        if let Some(known) = self.known.read().accounts.get(&address) {
            return known.clone();
        }
        if is_noted() {
            return None;
        }
        let at = self.at();
        let params = json!([address, at]);
        let ask = || -> Result<Option<Account>, String> {
            let answers = self.endpoint.ask(&[
                ("eth_getBalance", params.clone()),
                ("eth_getTransactionCount", params.clone()),
                ("eth_getCode", params.clone()),
            ])?;
            let [balance, nonce, code] = answers.try_into().map_err(|_| "three questions, other answers")?;
            let (balance, nonce): (U256, U256) = (read(balance)?, read(nonce)?);
            let code: Bytes = read(code)?;
            let code = (!code.is_empty()).then(|| {
                let code = bytecode(code);
                (code.hash_slow(), code)
            });
            let there = !balance.is_zero() || !nonce.is_zero() || code.is_some();
            Ok(there.then(|| Account { balance, nonce: nonce.saturating_to(), code }))
        };
        match ask() {
            Ok(account) => {
                self.known.write().accounts.insert(address, account.clone());
                account
            }
            Err(reason) => {
                note(self.lost(&reason));
                None
            }
        }
    }

    /// A word of storage.
    pub(crate) fn storage(&self, address: Address, slot: U256) -> U256 {
        if let Some(known) = self.known.read().words.get(&(address, slot)) {
            return *known;
        }
        if is_noted() {
            return U256::ZERO;
        }
        let params = json!([address, B256::from(slot), self.at()]);
        match self.endpoint.one("eth_getStorageAt", params).map_err(String::from).and_then(read::<U256>) {
            Ok(word) => {
                self.known.write().words.insert((address, slot), word);
                word
            }
            Err(reason) => {
                note(self.lost(&reason));
                U256::ZERO
            }
        }
    }

    /// Asks about the past. An answer is asked for once, as long as there is room to keep it. An error is the endpoint's own, code and data
    /// included.
    pub(crate) fn past(&self, method: &str, params: Value) -> Result<Value, RpcError> {
        let question = format!("{method}{params}");
        if let Some(answer) = self.known.read().past.0.get(&question) {
            return Ok(answer.clone());
        }
        let answer = self.endpoint.one(method, params).map_err(|f| f.error.unwrap_or_else(|| RpcError::refused(f.words)))?;
        let bytes = question.len() + answer.to_string().len();
        let mut known = self.known.write();
        let (answers, held) = &mut known.past;
        if !answer.is_null() && *held + bytes <= MAX_PAST && answers.insert(question, answer.clone()).is_none() {
            *held += bytes;
        }
        Ok(answer)
    }

    /// The block as a parameter. By its hash, so that it stays the same whatever happens to the chain.
    fn at(&self) -> Value {
        json!({"blockHash": self.hash})
    }

    fn lost(&self, reason: &str) -> String {
        let number = self.header.number;
        const ARCHIVE: [&str; 10] = [
            "missing trie node",
            "historical state",
            "state not available",
            "state is not available",
            "pruned",
            "archive",
            "header not found",
            "header for hash not found",
            "unknown block",
            "block not found",
        ];
        let lower = reason.to_lowercase();
        if ARCHIVE.iter().any(|words| lower.contains(words)) {
            return format!(
                "{} no longer has the state of block {number} ({reason}): take an endpoint that keeps all states (an archive node), or a \
                 newer block",
                self.url()
            );
        }
        format!("reading the state of block {number}: {reason}")
    }

    /// The hashes that the block sees, by a call that creates nothing: its init code returns them.
    fn visible_hashes(&self) -> Result<Hashes, String> {
        let code = Bytes::from(hashes_code(self.header.number));
        let answer = self.endpoint.one("eth_call", json!([{"data": code}, self.at()]));
        let words: Bytes = answer.map_err(String::from).and_then(read).map_err(|reason| self.lost(&reason))?;
        let words: Vec<B256> = words.chunks_exact(32).map(B256::from_slice).collect();
        let run = |from: usize| -> Vec<B256> {
            let hashes = words.get(from..from + HASHES as usize).unwrap_or_default();
            hashes.iter().copied().take_while(|hash| !hash.is_zero()).collect()
        };
        let number = words.first().map_or(U256::ZERO, |number| (*number).into());
        let (l1, l2) = (run(1), run(1 + HASHES as usize));
        if l2.first().is_some_and(|parent| *parent != self.header.parent_hash) {
            return Err(format!("{} gives another parent of block {} than its header", self.url(), self.header.number));
        }
        Ok(Hashes { number: number.saturating_to(), l1, l2 })
    }
}

/// Init code that returns `block.number`, the BLOCKHASH of the 256 numbers before it, and the ArbSys.arbBlockHash of the 256 blocks before
/// block `number`; zeros where there are none.
fn hashes_code(number: u64) -> Vec<u8> {
    let mut code = vec![0x43, 0x5f, 0x52]; // NUMBER into word 0
    code.push(0x5f); // i = 0
    let first = code.len() as u8;
    code.extend([0x5b, 0x80, 0x60, 1, 0x01, 0x43, 0x03, 0x40]); // BLOCKHASH(NUMBER - (i + 1))
    code.extend([0x81, 0x60, 1, 0x01, 0x60, 5, 0x1b, 0x52]); // into word i + 1
    code.extend([0x60, 1, 0x01, 0x80, 0x61, 1, 0, 0x11, 0x60, first, 0x57, 0x50]); // while ++i < 256
    code.extend([0x63, 0x2b, 0x40, 0x7a, 0x82, 0x60, 0xe0, 0x1b, 0x61, 0x80, 0, 0x52]); // selector of arbBlockHash
    code.push(0x5f); // i = 0
    let second = code.len() as u8;
    code.extend([0x5b, 0x80, 0x60, 1, 0x01, 0x67]);
    code.extend(number.to_be_bytes());
    code.extend([0x03, 0x61, 0x80, 4, 0x52]); // its argument: number - (i + 1)
    code.extend([0x60, 0x20, 0x61, 0x80, 0x40, 0x60, 0x24, 0x61, 0x80, 0, 0x60, 0x64, 0x61, 0xff, 0xff, 0xfa]); // STATICCALL of ArbSys
    code.extend([0x61, 0x80, 0x40, 0x51, 0x02]); // its answer, or 0 where it failed
    code.extend([0x81, 0x61, 1, 1, 0x01, 0x60, 5, 0x1b, 0x52]); // into word i + 257
    code.extend([0x60, 1, 0x01, 0x80, 0x61, 1, 0, 0x11, 0x60, second, 0x57, 0x50]);
    code.extend([0x61, 0x40, 0x20, 0x5f, 0xf3]); // RETURN 513 words
    code
}

/// The state of a thread's reads.
enum Noted {
    /// Nobody asks.
    Unasked,
    /// All that was asked for came.
    Whole,
    /// The first that did not, and why.
    Lost(String),
}

thread_local! {
    static NOTED: RefCell<Noted> = const { RefCell::new(Noted::Unasked) };
}

/// Notes that something could not be read. Where nobody asks for it, it is told.
pub(crate) fn note(reason: String) {
    NOTED.with_borrow_mut(|noted| match noted {
        Noted::Unasked => eprintln!("muster-devnode: {reason}"),
        Noted::Whole => *noted = Noted::Lost(reason),
        Noted::Lost(_) => {}
    });
}

/// Whether the current work is already void, so that it need not wait for answers.
fn is_noted() -> bool {
    NOTED.with_borrow(|noted| matches!(noted, Noted::Lost(_)))
}

/// Runs work that may read another chain.
///
/// # Errors
/// Something could not be read; the outcome is void.
pub(crate) fn checked<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    let outer = NOTED.replace(Noted::Whole);
    let value = run();
    match NOTED.replace(outer) {
        Noted::Lost(reason) => Err(reason),
        Noted::Unasked | Noted::Whole => Ok(value),
    }
}
