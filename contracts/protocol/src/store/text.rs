//! Texts as Solidity stores a `string`: up to 31 bytes in the word of its slot, longer ones from the hash of the slot on.

use crate::host::{offset, Host};
use alloc::string::String;
use alloc::vec::Vec;
use muster_core::word::Word;

/// Bytes of a word.
const WORD: usize = 32;

/// Where the bytes of a long text begin.
fn first<H: Host>(host: &H, slot: Word) -> Word {
    Word::from_be_bytes(host.keccak(&slot.to_be_bytes()))
}

/// Words that a text of this many bytes takes beside that of its slot.
fn behind(length: usize) -> usize {
    if length < WORD {
        0
    } else {
        length.div_ceil(WORD)
    }
}

/// Bytes of the text whose slot holds this word.
fn length(word: Word) -> usize {
    if word.0[0] & 1 == 0 {
        (word.0[0] as usize & 0xff) / 2
    } else {
        (word.0[0] / 2) as usize
    }
}

fn chunk(bytes: &[u8]) -> [u8; WORD] {
    let mut word = [0; WORD];
    word[..bytes.len()].copy_from_slice(bytes);
    word
}

/// Writes a text where none was.
#[inline(never)]
pub fn put_text<H: Host>(host: &mut H, slot: Word, text: &[u8]) {
    if text.len() < WORD {
        let mut word = chunk(text);
        word[WORD - 1] = text.len() as u8 * 2;
        host.store(slot, Word::from_be_bytes(word));
    } else {
        host.store(slot, Word::from(text.len() as u64 * 2 + 1));
        let first = first(host, slot);
        for (i, bytes) in text.chunks(WORD).enumerate() {
            host.store(offset(first, i as u64), Word::from_be_bytes(chunk(bytes)));
        }
    }
}

/// Writes a text over another, of which nothing is left.
pub fn replace_text<H: Host>(host: &mut H, slot: Word, text: &[u8]) {
    let before = behind(length(host.load(slot)));
    put_text(host, slot, text);
    let now = behind(text.len());
    if before > now {
        let first = first(host, slot);
        (now..before).for_each(|i| host.store(offset(first, i as u64), Word::ZERO));
    }
}

/// The text at a slot, of at most so many bytes.
#[inline(never)]
pub fn text<H: Host>(host: &H, slot: Word, most: usize) -> String {
    let word = host.load(slot);
    let length = length(word).min(most);
    let mut bytes = Vec::with_capacity(length);
    if length < WORD {
        bytes.extend_from_slice(&word.to_be_bytes()[..length]);
    } else {
        let first = first(host, slot);
        for i in 0..behind(length) {
            let chunk = host.load(offset(first, i as u64)).to_be_bytes();
            bytes.extend_from_slice(&chunk[..(length - i * WORD).min(WORD)]);
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
