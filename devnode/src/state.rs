//! Accounts, code and storage of the chain.
//!
//! Everything lies in persistent maps: [`State::clone`] is O(1) and shares all unchanged parts. So a snapshot, the state of an old block or
//! a scratch copy for a call costs nothing, however large the state.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use alloy_trie::root::storage_root_unhashed;
use alloy_trie::EMPTY_ROOT_HASH;
use imbl::HashMap;
use revm::primitives::{Address, Bytes, B256, KECCAK_EMPTY, U256};
use revm::state::{Account, AccountInfo, Bytecode, EvmState};
use serde::{Deserialize, Serialize};

use crate::arbos::L1Hashes;
use crate::fork::{self, bytecode, Fork};
use crate::stylus::recent::RecentPrograms;

/// Hash of an account's storage, if it is known.
#[derive(Clone, Debug, Default)]
pub(crate) struct StorageRoot(OnceLock<B256>);

impl StorageRoot {
    /// The storage has changed.
    pub(crate) fn forget(&mut self) {
        self.0.take();
    }

    pub(crate) fn get(&self, storage: impl Iterator<Item = (U256, U256)>) -> B256 {
        *self.0.get_or_init(|| storage_root_unhashed(storage.map(|(slot, value)| (slot.into(), value))))
    }
}

/// One account.
#[derive(Clone, Debug, Default)]
struct Entry {
    balance: U256,
    nonce: u64,
    /// `None` while the account has no code.
    code: Option<(B256, Bytecode)>,
    storage: HashMap<U256, U256>,
    /// Whether words that are not here are those of the chain this is a copy of.
    copied: bool,
    root: StorageRoot,
}

impl Entry {
    /// Of the chain this is a copy of.
    fn of(account: fork::Account) -> Self {
        Self { balance: account.balance, nonce: account.nonce, code: account.code, copied: true, ..Self::default() }
    }

    fn is_empty(&self) -> bool {
        self.balance.is_zero() && self.nonce == 0 && self.code.is_none()
    }

    fn put(&mut self, slot: U256, value: U256) {
        self.root.forget();
        if value.is_zero() && !self.copied {
            self.storage.remove(&slot);
        } else {
            self.storage.insert(slot, value);
        }
    }

    fn clear(&mut self) {
        self.root.forget();
        self.storage = HashMap::new();
        self.copied = false;
    }

    /// Whether a transaction that touched the account left it as it was.
    fn stays(&self, after: &Account) -> bool {
        let hash = self.code.as_ref().map_or(KECCAK_EMPTY, |(hash, _)| *hash);
        !self.is_empty()
            && !after.is_created()
            && (self.balance, self.nonce, hash) == (after.info.balance, after.info.nonce, after.info.code_hash)
            && after.storage.values().all(|value| !value.is_changed())
    }
}

/// The whole state of the chain, ArbOS's own part included. A clone is a snapshot.
///
/// ArbOS's records of programs, cache managers and parameters lie in the storage of its own account ([`crate::evm::ARBOS_STATE`]), so that
/// they revert with frames and snapshots like any other storage.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Behind pointers, so that a change copies a path of pointers and one account, not its neighbours.
    accounts: HashMap<Address, Arc<Entry>>,
    /// The chain this is a copy of: it has the accounts that are not in `accounts`.
    original: Option<Arc<Original>>,
    codes: HashMap<B256, Bytecode>,
    /// The hashes that BLOCKHASH sees.
    pub(crate) l1_hashes: L1Hashes,
    /// Programs that ran in the current block (ArbOS 60 and later: their next start is priced as cached).
    pub(crate) recent: Arc<RecentPrograms>,
    /// The last block whose hash lies in the history contract.
    pub(crate) recorded: Option<u64>,
}

/// A chain that is copied, and the other initial contents of the copy.
#[derive(Debug)]
struct Original {
    fork: Arc<Fork>,
    funded: Vec<Address>,
    balance: U256,
}

impl Original {
    fn account(&self, address: Address) -> Option<fork::Account> {
        let account = self.fork.account(address);
        if !self.funded.contains(&address) {
            return account;
        }
        let (nonce, code) = account.map_or((0, None), |account| (account.nonce, account.code));
        // Everybody has the keys: on public chains such accounts have code that takes money sent to them.
        let code = code.filter(|(_, code)| code.eip7702_address().is_none());
        Some(fork::Account { balance: self.balance, nonce, code })
    }
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

    /// The state of another chain, but for the balance of some accounts, which is also rid of code they have set (EIP-7702).
    pub(crate) fn of_fork(fork: Arc<Fork>, funded: Vec<Address>, balance: U256) -> Self {
        let (number, hashes) = (fork.block_number(), fork.hashes());
        let l1 = (1..).zip(&hashes.l1).filter_map(|(back, hash)| Some((hashes.number.checked_sub(back)? % 256, *hash)));
        Self {
            l1_hashes: L1Hashes::of_dump(hashes.number, l1.collect()),
            recorded: number.checked_sub(1),
            original: Some(Arc::new(Original { fork, funded, balance })),
            ..Self::default()
        }
    }

    /// Whether this is the state of a chain that is read through an endpoint.
    pub(crate) fn is_copy(&self) -> bool {
        self.original.is_some()
    }

    /// Tells something of an account that is there.
    fn of<T>(&self, address: Address, tell: impl FnOnce(&Entry) -> T) -> Option<T> {
        match (self.accounts.get(&address), &self.original) {
            (Some(entry), _) => Some(tell(entry)),
            (None, Some(original)) => original.account(address).map(|account| tell(&Entry::of(account))),
            (None, None) => None,
        }
    }

    /// Whether the account has a balance, a nonce or code.
    pub fn exists(&self, address: Address) -> bool {
        self.of(address, |a| !a.is_empty()).unwrap_or_default()
    }

    /// Balance in wei.
    pub fn balance(&self, address: Address) -> U256 {
        self.of(address, |a| a.balance).unwrap_or_default()
    }

    /// Number of transactions sent, or of contracts created by a contract.
    pub fn nonce(&self, address: Address) -> u64 {
        self.of(address, |a| a.nonce).unwrap_or_default()
    }

    /// Code as deployed; empty for an account without code.
    pub fn code(&self, address: Address) -> Bytes {
        self.of(address, |a| a.code.as_ref().map(|(_, code)| code.original_bytes())).flatten().unwrap_or_default()
    }

    /// Keccak hash of the code; the hash of nothing for an account without code.
    pub fn code_hash(&self, address: Address) -> B256 {
        self.of(address, |a| a.code.as_ref().map(|(hash, _)| *hash)).flatten().unwrap_or(KECCAK_EMPTY)
    }

    /// One word of storage; zero if never written.
    pub fn storage(&self, address: Address, slot: U256) -> U256 {
        let entry = self.accounts.get(&address);
        if let Some(word) = entry.and_then(|entry| entry.storage.get(&slot)) {
            return *word;
        }
        match &self.original {
            Some(original) if entry.is_none_or(|entry| entry.copied) => original.fork.storage(address, slot),
            _ => U256::ZERO,
        }
    }

    /// Every non-zero word of an account's storage, in no particular order. On a copy of another chain, only the words written since.
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
        entry(&mut self.accounts, self.original.as_deref(), address)
    }

    /// Takes an account out, whatever it held on the chain this is a copy of.
    fn remove(&mut self, address: Address) {
        match &self.original {
            None => drop(self.accounts.remove(&address)),
            Some(_) => drop(self.accounts.insert(address, Arc::default())),
        }
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
        self.entry(address).put(slot, value);
    }

    /// Drops all storage of an account (state overrides that replace it whole).
    pub fn clear_storage(&mut self, address: Address) {
        self.entry(address).clear();
    }

    /// The changes before a block's first transaction; again in the same block it changes nothing.
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
                self.remove(address);
                continue;
            }
            if self.accounts.get(&address).is_some_and(|known| known.stays(&account)) {
                continue;
            }
            let entry = entry(&mut self.accounts, self.original.as_deref(), address);
            if account.is_created() {
                entry.clear();
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
                entry.put(slot, value.present_value);
            }
            // A touched account without balance, nonce and code ceases to exist (EIP-161).
            if entry.is_empty() {
                self.remove(address);
            }
        }
    }
}

/// An account that is about to change.
fn entry<'a>(accounts: &'a mut HashMap<Address, Arc<Entry>>, original: Option<&Original>, address: Address) -> &'a mut Entry {
    let read = || original.and_then(|original| original.account(address)).map(Entry::of).unwrap_or_default();
    Arc::make_mut(accounts.entry(address).or_insert_with(|| Arc::new(read())))
}

fn no_bytes(bytes: &Bytes) -> bool {
    bytes.is_empty()
}

impl revm::Database for State {
    type Error = Infallible;

    fn basic(&mut self, address: Address) -> Result<Option<AccountInfo>, Infallible> {
        Ok(self.of(address, |a| {
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
