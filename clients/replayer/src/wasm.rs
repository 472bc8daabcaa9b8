//! The WASM interface: imports from `chain`, and exports.

use crate::host::{again, Call, Chain};

#[link(wasm_import_module = "chain")]
extern "C" {
    fn load(slot: *const u8, word: *mut u8);
    fn store(slot: *const u8, word: *const u8);
    fn keccak(bytes: *const u8, length: usize, hash: *mut u8);
    /// 1, or 0 where there is none.
    fn block_hash(number: u64, hash: *mut u8) -> u32;
    fn log(topics: usize, bytes: *const u8, length: usize);
    fn mark() -> u32;
    fn undo(mark: u32);
}

struct Imported;

// SAFETY, of all calls: the other side reads and writes no more than the bytes it is told of, 32 where no length is.
impl Chain for Imported {
    fn load(&self, slot: &[u8; 32]) -> [u8; 32] {
        let mut word = [0; 32];
        unsafe { load(slot.as_ptr(), word.as_mut_ptr()) };
        word
    }

    fn store(&mut self, slot: &[u8; 32], word: &[u8; 32]) {
        unsafe { store(slot.as_ptr(), word.as_ptr()) }
    }

    fn keccak(&self, bytes: &[u8]) -> [u8; 32] {
        let mut hash = [0; 32];
        unsafe { keccak(bytes.as_ptr(), bytes.len(), hash.as_mut_ptr()) };
        hash
    }

    fn block_hash(&self, number: u64) -> Option<[u8; 32]> {
        let mut hash = [0; 32];
        (unsafe { block_hash(number, hash.as_mut_ptr()) } == 1).then_some(hash)
    }

    fn log(&mut self, topics: usize, bytes: &[u8]) {
        unsafe { log(topics, bytes.as_ptr(), bytes.len()) }
    }

    fn mark(&self) -> u32 {
        unsafe { mark() }
    }

    fn undo(&mut self, mark: u32) {
        unsafe { undo(mark) }
    }
}

/// Sender, contract, and wei sent, before the calldata.
const HEAD: usize = 20 + 20 + 32;

/// Room for a call.
#[no_mangle]
pub extern "C" fn room(length: usize) -> *mut u8 {
    Box::leak(vec![0; length].into_boxed_slice()).as_mut_ptr()
}

/// Repeats the call in a [`room`]: 20 bytes of the sender, 20 of the contract, 32 of the wei sent, and the calldata. `signed` is
/// 0 if the sender had code. Returns 1 if it is accepted, 0 if it is refused, 2 if it does not change anything.
///
/// # Safety
/// The bytes are there, and nobody else's.
#[no_mangle]
pub unsafe extern "C" fn run(bytes: *const u8, length: usize, now: u64, block: u64, signed: u32) -> u32 {
    // SAFETY: as the caller says.
    let bytes = unsafe { std::slice::from_raw_parts(bytes, length) };
    let Some((head, data)) = bytes.split_at_checked(HEAD) else { return 2 };
    let (mut sender, mut here, mut value) = ([0; 20], [0; 20], [0; 32]);
    sender.copy_from_slice(&head[..20]);
    here.copy_from_slice(&head[20..40]);
    value.copy_from_slice(&head[40..]);
    match again(&mut Imported, Call { sender, here, value, data, now, block, signed: signed != 0 }) {
        Some(taken) => taken.into(),
        None => 2,
    }
}
