//! From deployed code to a module ready to run.

use std::io::{Read, Write};

use revm::primitives::{keccak256, Address, B256};

use super::transform::{self, Metered, Rules};
use super::{CLASSIC_PREFIX, FRAGMENT_PREFIX, ROOT_PREFIX};

/// Where a program's WASM lies.
pub(crate) enum Source {
    /// Compressed WASM with an empty dictionary.
    Classic(Vec<u8>),
    /// Pieces elsewhere.
    Root { decompressed: u32, fragments: Vec<Address> },
}

/// Reads the header of a program.
///
/// # Errors
/// Why it isn't one, in words.
pub(crate) fn source(code: &[u8]) -> Result<Source, String> {
    if code.len() <= 3 {
        return Err("specified bytecode is not a Stylus program".into());
    }
    match code[3] {
        _ if code.starts_with(&FRAGMENT_PREFIX) => {
            return Err("fragmented stylus programs cannot be activated directly; activate the root program instead".into())
        }
        0 => {}
        1 => {
            return Err("dictionary type 1 (Nitro's own word list) is not available here: compress with the empty \
                        dictionary, as cargo-stylus does"
                .into())
        }
        id => return Err(format!("unsupported dictionary type: {id}")),
    }
    if code.starts_with(&CLASSIC_PREFIX) {
        return Ok(Source::Classic(code[4..].to_vec()));
    }
    if !code.starts_with(&ROOT_PREFIX) {
        return Err("specified bytecode is not a Stylus program".into());
    }
    if code.len() < 8 {
        return Err(format!("stylus program root too short: need at least 8 bytes, got {}", code.len()));
    }
    let (header, addresses) = code.split_at(8);
    if addresses.len() % 20 != 0 {
        return Err(format!("stylus program root address data has invalid length: {} (must be multiple of 20)", addresses.len()));
    }
    Ok(Source::Root {
        decompressed: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
        fragments: addresses.chunks_exact(20).map(Address::from_slice).collect(),
    })
}

/// Takes the header off a piece of a program.
pub(crate) fn fragment(code: &[u8]) -> Result<&[u8], String> {
    if code.len() > 3 && code.starts_with(&FRAGMENT_PREFIX) {
        Ok(&code[3..])
    } else {
        Err("specified bytecode is not a Stylus program fragment".into())
    }
}

/// Undoes brotli.
///
/// # Errors
/// Data that isn't brotli, or more than `limit` bytes.
pub(crate) fn decompress(data: &[u8], limit: u32) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let mut reader = brotli::Decompressor::new(data, 4096).take(u64::from(limit) + 1);
    reader.read_to_end(&mut out).map_err(|e| format!("failed decompression: {e}"))?;
    if out.len() > limit as usize {
        return Err(format!("failed decompression: more than {limit} bytes"));
    }
    Ok(out)
}

/// Compresses WASM the way it is deployed, header included: the code that `cargo stylus` puts on chain.
pub fn deployed_code(wasm: &[u8]) -> Vec<u8> {
    let mut code = CLASSIC_PREFIX.to_vec();
    code.push(0);
    let mut writer = brotli::CompressorWriter::new(&mut code, 4096, 11, 22);
    // Writing into memory doesn't fail.
    let _ = writer.write_all(wasm);
    drop(writer);
    code
}

/// A module that passed, and the name it goes by.
pub(crate) struct Activated {
    pub metered: Metered,
    /// Stands for Nitro's WAVM hash, which depends on machinery for proofs that isn't here: the hash of the
    /// instrumented module.
    pub module_hash: B256,
}

/// Gas for a number of microseconds of work.
fn microseconds_to_gas(us: u64) -> u64 {
    us.saturating_mul(28)
}

/// Checks and instruments a module, charging `gas` for the work.
///
/// # Errors
/// The reason why it may not be activated. Gas charged until then stays charged.
pub(crate) fn activate(wasm: &[u8], rules: Rules, gas: &mut u64) -> Result<Activated, String> {
    let metered = transform::meter(wasm, rules)?;
    for us in metered.figures.activation_us {
        let cost = microseconds_to_gas(us);
        if *gas < cost {
            *gas = 0;
            return Err("out of gas".into());
        }
        *gas -= cost;
    }
    let module_hash = keccak256(&metered.wasm);
    Ok(Activated { metered, module_hash })
}
