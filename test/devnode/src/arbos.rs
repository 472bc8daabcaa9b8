//! ArbOS's own state: parameters, programs, cache managers.

use imbl::HashMap;
use revm::primitives::{keccak256, B256};

/// The L1 block hashes BLOCKHASH answers with. They are not L1's: ArbOS stores the L2 parent's hash when the L1
/// number moves, and fills skipped numbers by hashing.
#[derive(Clone, Debug, Default)]
pub(crate) struct L1Hashes {
    next: u64,
    ring: HashMap<u64, B256>,
}

impl L1Hashes {
    /// Hash of L1 block `number`, if it is one of the 256 before the current.
    pub(crate) fn get(&self, number: u64) -> Option<B256> {
        if number >= self.next || number + 256 < self.next {
            return None;
        }
        self.ring.get(&(number % 256)).copied()
    }

    /// At the start of an L2 block: `l1_number` is the number it carries, `parent` the hash of its L2 parent.
    pub(crate) fn start_block(&mut self, l1_number: u64, parent: B256) {
        if l1_number <= self.next || l1_number == 0 {
            return;
        }
        let number = l1_number - 1;
        let mut next = self.next;
        if next + 256 < number {
            next = number - 256;
        }
        while next + 1 < number {
            next += 1;
            let mut preimage = [0; 40];
            preimage[..32].copy_from_slice(parent.as_slice());
            preimage[32..].copy_from_slice(&next.to_le_bytes());
            self.ring.insert(next % 256, keccak256(preimage));
        }
        self.ring.insert(number % 256, parent);
        self.next = number + 1;
    }
}
