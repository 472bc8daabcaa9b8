//! The Merkle trees of a state, made from scratch when they are asked for.
//!
//! None is kept: hashing a path anew for every write would cost more than running the transaction. The hash of an account's storage is
//! remembered until that storage changes.

use alloy_primitives::{keccak256, Address, Bytes, B256, KECCAK256_EMPTY, U256};
use alloy_rlp::Encodable;
use alloy_trie::proof::ProofRetainer;
use alloy_trie::{HashBuilder, Nibbles, TrieAccount, EMPTY_ROOT_HASH};

use crate::state::State;

/// That an account is, or is not, in a state.
#[derive(Clone, Debug)]
pub struct AccountProof {
    /// Wei.
    pub balance: U256,
    /// Transactions sent, or contracts created.
    pub nonce: u64,
    /// Hash of the code.
    pub code_hash: B256,
    /// Root of the tree of its storage.
    pub storage_root: B256,
    /// Nodes from the state's root to the account.
    pub proof: Vec<Bytes>,
    /// For each slot asked about its value, and the nodes from the storage's root to it.
    pub storage: Vec<(U256, Vec<Bytes>)>,
}

/// Leaves in the order of the tree.
fn sorted(mut leaves: Vec<(B256, Vec<u8>)>) -> Vec<(B256, Vec<u8>)> {
    leaves.sort_unstable_by_key(|(key, _)| *key);
    leaves
}

/// Nodes from the root of a tree to each target, whether it is there or not; and the root.
fn prove(leaves: &[(B256, Vec<u8>)], targets: &[B256]) -> (B256, Vec<Vec<Bytes>>) {
    let targets: Vec<Nibbles> = targets.iter().map(Nibbles::unpack).collect();
    let mut builder = HashBuilder::default().with_proof_retainer(ProofRetainer::new(targets.clone()));
    for (key, value) in leaves {
        builder.add_leaf(Nibbles::unpack(key), value);
    }
    let root = builder.root();
    let nodes = builder.take_proof_nodes();
    let path = |target: &Nibbles| {
        let mut nodes = nodes.matching_nodes_sorted(target);
        // An empty tree has no nodes.
        nodes.retain(|(_, node)| !leaves.is_empty() || !node.is_empty());
        nodes.into_iter().map(|(_, node)| node).collect()
    };
    (root, targets.iter().map(path).collect())
}

impl State {
    fn trie_account(&self, address: Address) -> TrieAccount {
        TrieAccount {
            nonce: self.nonce(address),
            balance: self.balance(address),
            storage_root: self.storage_root(address),
            code_hash: self.code_hash(address),
        }
    }

    fn account_leaves(&self) -> Vec<(B256, Vec<u8>)> {
        sorted(
            self.addresses()
                .map(|address| {
                    let mut leaf = Vec::new();
                    self.trie_account(address).encode(&mut leaf);
                    (keccak256(address), leaf)
                })
                .collect(),
        )
    }

    /// Root of the tree of all accounts.
    pub fn root(&self) -> B256 {
        let mut builder = HashBuilder::default();
        for (key, leaf) in self.account_leaves() {
            builder.add_leaf(Nibbles::unpack(key), &leaf);
        }
        builder.root()
    }

    /// Proves the contents of an account and of some of its slots (EIP-1186).
    pub fn prove(&self, address: Address, slots: &[B256]) -> AccountProof {
        let (_, mut paths) = prove(&self.account_leaves(), &[keccak256(address)]);
        let leaves = sorted(
            self.storage_iter(address)
                .map(|(slot, value)| {
                    let mut leaf = Vec::new();
                    value.encode(&mut leaf);
                    (keccak256(B256::from(slot)), leaf)
                })
                .collect(),
        );
        let targets: Vec<B256> = slots.iter().map(keccak256).collect();
        let (storage_root, storage_paths) = prove(&leaves, &targets);
        let known = self.knows(address);
        AccountProof {
            balance: self.balance(address),
            nonce: self.nonce(address),
            code_hash: if known { self.code_hash(address) } else { KECCAK256_EMPTY },
            storage_root: if leaves.is_empty() { EMPTY_ROOT_HASH } else { storage_root },
            proof: paths.pop().unwrap_or_default(),
            storage: slots.iter().map(|slot| self.storage(address, (*slot).into())).zip(storage_paths).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_trie::proof::verify_proof;

    fn rlp(value: impl Encodable) -> Vec<u8> {
        let mut out = Vec::new();
        value.encode(&mut out);
        out
    }

    #[test]
    fn proofs_lead_from_the_root_to_what_is_and_is_not_there() {
        let mut state = State::new();
        assert_eq!(state.root(), EMPTY_ROOT_HASH);
        for n in 1..=100u8 {
            state.set_balance(Address::repeat_byte(n), U256::from(n));
        }
        let contract = Address::repeat_byte(7);
        for slot in 1..=50u64 {
            state.set_storage(contract, U256::from(slot), U256::from(slot * 1_000));
        }
        let root = state.root();
        let slots = [B256::with_last_byte(3), B256::with_last_byte(200)];
        let proof = state.prove(contract, &slots);
        let account = state.trie_account(contract);
        assert_eq!(account.storage_root, proof.storage_root);
        verify_proof(root, Nibbles::unpack(keccak256(contract)), Some(rlp(account)), &proof.proof).unwrap();
        assert_eq!(proof.storage[0].0, U256::from(3_000));
        let key = |slot: B256| Nibbles::unpack(keccak256(slot));
        verify_proof(proof.storage_root, key(slots[0]), Some(rlp(U256::from(3_000))), &proof.storage[0].1).unwrap();
        verify_proof(proof.storage_root, key(slots[1]), None, &proof.storage[1].1).unwrap();
        let nobody = Address::repeat_byte(0xee);
        let absent = state.prove(nobody, &[]);
        verify_proof(root, Nibbles::unpack(keccak256(nobody)), None, &absent.proof).unwrap();

        // A remembered hash goes with the next change of its storage, and comes back with the same contents.
        state.set_storage(contract, U256::from(1), U256::from(5));
        assert_ne!(state.root(), root);
        state.set_storage(contract, U256::from(1), U256::from(1_000));
        assert_eq!(state.root(), root);
    }
}
