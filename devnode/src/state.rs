//! Accounts, code and storage of the chain.
//!
//! Everything lies in persistent maps: [`State::clone`] is O(1) and shares all that stays the same, so a
//! snapshot, the state of an old block or a scratch copy for a call costs nothing, however large the state.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use alloy_trie::EMPTY_ROOT_HASH;
use imbl::HashMap;
use revm::primitives::{Address, Bytes, B256, KECCAK_EMPTY, U256};
use revm::state::{Account, AccountInfo, Bytecode, EvmState};
use serde::{Deserialize, Serialize};

use crate::arbos::L1Hashes;
use crate::proof::StorageRoot;
use crate::stylus::recent::RecentPrograms;

/// One account.
#[derive(Clone, Debug, Default)]
struct Entry {
    balance: U256,
    nonce: u64,
    /// `None` while the account has no code.
    code: Option<(B256, Bytecode)>,
    storage: HashMap<U256, U256>,
    root: StorageRoot,
}

impl Entry {
    /// Whether a transaction that touched the account left it as it was.
    fn stays(&self, after: &Account) -> bool {
        let hash = self.code.as_ref().map_or(KECCAK_EMPTY, |(hash, _)| *hash);
        let empty = self.balance.is_zero() && self.nonce == 0 && self.code.is_none();
        !empty
            && !after.is_created()
            && (self.balance, self.nonce, hash) == (after.info.balance, after.info.nonce, after.info.code_hash)
            && after.storage.values().all(|value| !value.is_changed())
    }
}

/// The whole state of the chain, ArbOS's own part included. A clone is a snapshot.
///
/// What ArbOS remembers about programs, cache managers and parameters lies in the storage of its own account
/// ([`crate::evm::ARBOS_STATE`]), so that it reverts with frames and snapshots like any other storage.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Behind pointers, so that a change copies a path of pointers and one account, not its neighbours.
    accounts: HashMap<Address, Arc<Entry>>,
    codes: HashMap<B256, Bytecode>,
    /// What BLOCKHASH sees.
    pub(crate) l1_hashes: L1Hashes,
    /// Programs that ran in the current block (ArbOS 60 and later: their next start is priced as cached).
    pub(crate) recent: Arc<RecentPrograms>,
    /// The last block whose hash lies in the history contract.
    pub(crate) recorded: Option<u64>,
}

/// One account, to be written down.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryDump {
    balance: U256,
    nonce: u64,
    #[serde(default, skip_serializing_if = "no_bytes")]
    code: Bytes,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    storage: BTreeMap<U256, U256>,
}

/// A whole state, to be written down.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StateDump {
    accounts: BTreeMap<Address, EntryDump>,
    next_l1_number: u64,
    l1_hashes: BTreeMap<u64, B256>,
    recorded: Option<u64>,
}

impl State {
    pub(crate) fn dump(&self) -> StateDump {
        let entry = |(address, entry): (&Address, &Arc<Entry>)| {
            let dump = EntryDump {
                balance: entry.balance,
                nonce: entry.nonce,
                code: self.code(*address),
                storage: entry.storage.iter().map(|(slot, value)| (*slot, *value)).collect(),
            };
            (*address, dump)
        };
        let (next_l1_number, l1_hashes) = self.l1_hashes.dump();
        StateDump { accounts: self.accounts.iter().map(entry).collect(), next_l1_number, l1_hashes, recorded: self.recorded }
    }

    pub(crate) fn of_dump(dump: StateDump) -> Self {
        let mut state = Self {
            l1_hashes: L1Hashes::of_dump(dump.next_l1_number, dump.l1_hashes),
            recorded: dump.recorded,
            ..Self::default()
        };
        for (address, account) in dump.accounts {
            state.set_balance(address, account.balance);
            state.set_nonce(address, account.nonce);
            if !account.code.is_empty() {
                state.set_code(address, account.code);
            }
            for (slot, value) in account.storage {
                state.set_storage(address, slot, value);
            }
        }
        state
    }

    /// A state without accounts. See [`crate::evm::Evm::genesis`] for one a chain can start from.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the account has a balance, a nonce or code.
    pub fn exists(&self, address: Address) -> bool {
        self.accounts.get(&address).is_some_and(|a| !a.balance.is_zero() || a.nonce != 0 || a.code.is_some())
    }

    /// Balance in wei.
    pub fn balance(&self, address: Address) -> U256 {
        self.accounts.get(&address).map_or(U256::ZERO, |a| a.balance)
    }

    /// Number of transactions sent, or of contracts created by a contract.
    pub fn nonce(&self, address: Address) -> u64 {
        self.accounts.get(&address).map_or(0, |a| a.nonce)
    }

    /// Code as deployed; empty for an account without code.
    pub fn code(&self, address: Address) -> Bytes {
        self.accounts.get(&address).and_then(|a| a.code.as_ref()).map_or_else(Bytes::new, |(_, c)| c.original_bytes())
    }

    /// Keccak hash of the code; the hash of nothing for an account without code.
    pub fn code_hash(&self, address: Address) -> B256 {
        self.accounts.get(&address).and_then(|a| a.code.as_ref()).map_or(KECCAK_EMPTY, |(h, _)| *h)
    }

    /// One word of storage; zero if never written.
    pub fn storage(&self, address: Address, slot: U256) -> U256 {
        self.accounts.get(&address).and_then(|a| a.storage.get(&slot).copied()).unwrap_or_default()
    }

    /// Every non-zero word of an account's storage, in no particular order.
    pub fn storage_iter(&self, address: Address) -> impl Iterator<Item = (U256, U256)> + '_ {
        self.accounts.get(&address).into_iter().flat_map(|a| a.storage.iter().map(|(k, v)| (*k, *v)))
    }

    /// Accounts that hold anything.
    pub(crate) fn addresses(&self) -> impl Iterator<Item = Address> + '_ {
        self.accounts.keys().copied()
    }

    /// Whether an account is in the state, be it empty.
    pub(crate) fn knows(&self, address: Address) -> bool {
        self.accounts.contains_key(&address)
    }

    /// Root of the tree of an account's storage.
    pub(crate) fn storage_root(&self, address: Address) -> B256 {
        match self.accounts.get(&address) {
            Some(account) => account.root.get(account.storage.iter().map(|(k, v)| (*k, *v))),
            None => EMPTY_ROOT_HASH,
        }
    }

    fn entry(&mut self, address: Address) -> &mut Entry {
        Arc::make_mut(self.accounts.entry(address).or_default())
    }

    /// Sets a balance (genesis and `*_setBalance`).
    pub fn set_balance(&mut self, address: Address, balance: U256) {
        self.entry(address).balance = balance;
    }

    /// Sets a nonce (genesis and `*_setNonce`).
    pub fn set_nonce(&mut self, address: Address, nonce: u64) {
        self.entry(address).nonce = nonce;
    }

    /// Sets an account's code (genesis, `*_setCode` and state overrides). Empty code removes it.
    pub fn set_code(&mut self, address: Address, code: Bytes) {
        let code = (!code.is_empty()).then(|| {
            let code = bytecode(code);
            (code.hash_slow(), code)
        });
        if let Some((hash, code)) = &code {
            self.codes.insert(*hash, code.clone());
        }
        self.entry(address).code = code;
    }

    /// Sets one word of storage (genesis, `*_setStorageAt` and state overrides).
    pub fn set_storage(&mut self, address: Address, slot: U256, value: U256) {
        let entry = self.entry(address);
        entry.root.forget();
        if value.is_zero() {
            entry.storage.remove(&slot);
        } else {
            entry.storage.insert(slot, value);
        }
    }

    /// Drops all storage of an account (state overrides that replace it whole).
    pub fn clear_storage(&mut self, address: Address) {
        let entry = self.entry(address);
        entry.root.forget();
        entry.storage = HashMap::new();
    }

    /// What happens before a block's first transaction; again in the same block it changes nothing.
    pub(crate) fn start_block(&mut self, l2_number: u64, l1_number: u64, parent: B256) {
        self.l1_hashes.start_block(l1_number, parent);
        if self.recent.block() != l2_number {
            self.recent = Arc::new(RecentPrograms::of_block(l2_number));
        }
    }

    /// Writes the outcome of a transaction.
    pub(crate) fn commit(&mut self, changes: EvmState) {
        for (address, account) in changes {
            if !account.is_touched() {
                continue;
            }
            if account.is_selfdestructed() || (account.is_empty() && account.is_loaded_as_not_existing()) {
                self.accounts.remove(&address);
                continue;
            }
            if self.accounts.get(&address).is_some_and(|known| known.stays(&account)) {
                continue;
            }
            let entry = Arc::make_mut(self.accounts.entry(address).or_default());
            if account.is_created() {
                entry.storage = HashMap::new();
                entry.root.forget();
            }
            entry.balance = account.info.balance;
            entry.nonce = account.info.nonce;
            if account.info.is_empty_code_hash() {
                entry.code = None;
            } else if entry.code.as_ref().map(|(h, _)| *h) != Some(account.info.code_hash) {
                let code = account.info.code.or_else(|| self.codes.get(&account.info.code_hash).cloned()).unwrap_or_default();
                self.codes.insert(account.info.code_hash, code.clone());
                entry.code = Some((account.info.code_hash, code));
            }
            for (slot, value) in account.storage {
                if !value.is_changed() {
                    continue;
                }
                entry.root.forget();
                if value.present_value.is_zero() {
                    entry.storage.remove(&slot);
                } else {
                    entry.storage.insert(slot, value.present_value);
                }
            }
            // A touched account without balance, nonce and code ceases to exist (EIP-161).
            if entry.balance.is_zero() && entry.nonce == 0 && entry.code.is_none() {
                self.accounts.remove(&address);
            }
        }
    }
}

fn no_bytes(bytes: &Bytes) -> bool {
    bytes.is_empty()
}

/// Code as revm runs it. A malformed EIP-7702 designator is ordinary code, as anywhere else.
fn bytecode(code: Bytes) -> Bytecode {
    Bytecode::new_raw_checked(code.clone()).unwrap_or_else(|_| Bytecode::new_legacy(code))
}

impl revm::Database for State {
    type Error = Infallible;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Infallible> {
        Ok(self.accounts.get(&address).map(|a| {
            let (code_hash, code) = match &a.code {
                Some((hash, code)) => (*hash, Some(code.clone())),
                None => (KECCAK_EMPTY, Some(Bytecode::default())),
            };
            AccountInfo { balance: a.balance, nonce: a.nonce, code_hash, code, ..Default::default() }
        }))
    }

    fn code_by_hash(&mut self, hash: B256) -> Result<Bytecode, Infallible> {
        Ok(self.codes.get(&hash).cloned().unwrap_or_default())
    }

    fn storage(&mut self, address: Address, slot: U256) -> Result<U256, Infallible> {
        Ok(State::storage(self, address, slot))
    }

    fn block_hash(&mut self, number: u64) -> Result<B256, Infallible> {
        Ok(self.l1_hashes.get(number).unwrap_or_default())
    }
}
