//! Prices, in ink and gas. 10,000 ink are one gas.

use wasmparser::{FuncType, Operator};

/// Ink for one instruction, u64::MAX for one that may stand in a program but never run.
#[rustfmt::skip]
pub fn opcode_ink(op: &Operator, types: &[FuncType]) -> u64 {
    use Operator::*;
    match op {
        Unreachable | Return | Nop | I32Const { .. } | I64Const { .. } => 1,
        Block { .. } | Loop { .. } | Else | End => 1,
        Drop => 9,
        Br { .. } | BrIf { .. } | If { .. } => 765,
        Select => 1250,
        Call { .. } => 3800,
        LocalGet { .. } | LocalTee { .. } => 75,
        LocalSet { .. } => 210,
        GlobalGet { .. } => 225,
        GlobalSet { .. } => 575,
        I32Load { .. } | I32Load8S { .. } | I32Load8U { .. } | I32Load16S { .. } | I32Load16U { .. } => 670,
        I64Load { .. } | I64Load8S { .. } | I64Load8U { .. } | I64Load16S { .. } | I64Load16U { .. }
        | I64Load32S { .. } | I64Load32U { .. } => 680,
        I32Store { .. } | I32Store8 { .. } | I32Store16 { .. } => 825,
        I64Store { .. } | I64Store8 { .. } | I64Store16 { .. } | I64Store32 { .. } => 950,
        MemorySize { .. } => 3000,
        MemoryGrow { .. } => 8050,
        I32Eqz | I32Eq | I32Ne | I32LtS | I32LtU | I32GtS | I32GtU | I32LeS | I32LeU | I32GeS | I32GeU => 170,
        I64Eqz | I64Eq | I64Ne | I64LtS | I64LtU | I64GtS | I64GtU | I64LeS | I64LeU | I64GeS | I64GeU => 225,
        I32Clz | I32Ctz | I64Clz | I64Ctz => 210,
        I32Add | I32Sub | I32And | I32Or | I32Xor | I32Shl | I32ShrS | I32ShrU | I32Rotl | I32Rotr => 70,
        I64Add | I64Sub | I64And | I64Or | I64Xor | I64Shl | I64ShrS | I64ShrU | I64Rotl | I64Rotr => 100,
        I32Mul | I64Mul => 160,
        I32DivS | I32DivU | I32RemS | I32RemU => 1120,
        I64DivS | I64DivU | I64RemS | I64RemU => 1270,
        I32Popcnt => 2650,
        I64Popcnt => 6000,
        I32WrapI64 | I64ExtendI32S | I64ExtendI32U
        | I32Extend8S | I32Extend16S | I64Extend8S | I64Extend16S | I64Extend32S => 100,
        MemoryCopy { .. } | MemoryFill { .. } => 950,
        BrTable { targets } => 2400 + 325 * u64::from(targets.len()),
        CallIndirect { type_index, .. } => {
            13_610 + 650 * types.get(*type_index as usize).map_or(0, |ty| ty.params().len() as u64)
        }
        _ => u64::MAX,
    }
}

/// Ink for entering any host function but keccak.
pub const HOSTIO: u64 = 8400;
/// Ink for each fixed-size value read from or written to the program's memory.
pub const PTR: u64 = 5040;
/// Ink for asking the EVM.
pub const EVM_API: u64 = 59_673;
/// Ink for a 256-bit division.
pub const DIV: u64 = 20_000;
/// Ink for `addmod`.
pub const ADD_MOD: u64 = 21_000;
/// Ink for `mulmod`.
pub const MUL_MOD: u64 = 24_100;

/// Ink for writing `bytes` into the program's memory.
pub fn write_ink(bytes: u32) -> u64 {
    5040 + 30 * u64::from(bytes.saturating_sub(32))
}

/// Ink for reading `bytes` from the program's memory.
pub fn read_ink(bytes: u32) -> u64 {
    16_381 + 55 * u64::from(bytes.saturating_sub(32))
}

/// Ink for hashing `bytes`.
pub fn keccak_ink(bytes: u32) -> u64 {
    121_800 + 21_000 * u64::from(bytes.div_ceil(32).saturating_sub(2))
}

/// Ink for raising to a big-endian exponent, on top of the host function itself.
pub fn pow_ink(exponent: &[u8; 32]) -> u64 {
    let zeros = exponent.iter().take_while(|b| **b == 0).count() as u64;
    3000 + (33 - zeros) * 17_500
}

/// Gas for a storage word read for the first time in a transaction.
pub const COLD_SLOAD: u64 = 2100;
/// Gas for a storage word read again, and for transient storage.
pub const WARM_ACCESS: u64 = 100;
/// Gas for an account touched for the first time in a transaction.
pub const COLD_ACCOUNT: u64 = 2600;
/// Gas that must be left before a storage write (EIP-2200).
pub const SSTORE_SENTRY: u64 = 2300;
/// The highest charge for one access to a frame's storage cache.
pub const MAX_CACHE_ACCESS: u64 = 10;
/// Gas for looking up an account's code.
pub const EXT_CODE: u64 = 700;

/// Gas for the `n`th read of a frame's storage cache.
pub fn cache_read_gas(n: u64) -> u64 {
    match n {
        0..=32 => 0,
        33..=128 => 2,
        _ => 10,
    }
}

/// Gas for the `n`th write to a frame's storage cache.
pub fn cache_write_gas(n: u64) -> u64 {
    match n {
        0..=8 => 0,
        9..=64 => 7,
        _ => 10,
    }
}

/// The cost of the pages of all open programs. Pages are given back when a frame ends; the exponential part is paid for the most there ever
/// were in the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryModel {
    /// Pages a transaction gets for nothing.
    pub free_pages: u16,
    /// Gas per page beyond.
    pub page_gas: u16,
}

impl MemoryModel {
    /// Gas for `new` pages while `open` are in use and `ever` were at most. u64::MAX beyond 128.
    pub fn gas(&self, new: u16, open: u16, ever: u16) -> u64 {
        let now = open.saturating_add(new);
        let most = ever.max(now);
        if most <= self.free_pages {
            return 0;
        }
        let beyond = |pages: u16| u64::from(pages.saturating_sub(self.free_pages));
        let linear = (beyond(now) - beyond(open)) * u64::from(self.page_gas);
        linear.saturating_add(ramp(most) - ramp(ever))
    }
}

/// 31,874,000 to the power of pages / 128, rounded down.
fn ramp(pages: u16) -> u64 {
    RAMP.get(usize::from(pages)).map_or(u64::MAX, |x| u64::from(*x))
}

#[rustfmt::skip]
const RAMP: [u32; 129] = [
    1, 1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, 6, 7, 8, 9, 11, 12, 14, 17, 19, 22, 25, 29, 33, 38, 43, 50, 57, 65, 75,
    85, 98, 112, 128, 147, 168, 193, 221, 253, 289, 331, 379, 434, 497, 569, 651, 745, 853, 976, 1117, 1279, 1463,
    1675, 1917, 2194, 2511, 2874, 3290, 3765, 4309, 4932, 5645, 6461, 7395, 8464, 9687, 11087, 12689, 14523, 16621,
    19024, 21773, 24919, 28521, 32642, 37359, 42758, 48938, 56010, 64104, 73368, 83971, 96106, 109994, 125890, 144082,
    164904, 188735, 216010, 247226, 282953, 323844, 370643, 424206, 485509, 555672, 635973, 727880, 833067, 953456,
    1091243, 1248941, 1429429, 1636000, 1872423, 2143012, 2452704, 2807151, 3212820, 3677113, 4208502, 4816684,
    5512756, 6309419, 7221210, 8264766, 9459129, 10826093, 12390601, 14181199, 16230562, 18576084, 21260563, 24332984,
    27849408, 31873999,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramp_follows_its_formula() {
        let base = (31_874_000f64.ln() / 128.0).exp();
        for pages in 0..=128u16 {
            assert_eq!(ramp(pages), base.powi(pages.into()) as u64, "{pages} pages");
        }
        assert_eq!(ramp(129), u64::MAX);
    }

    #[test]
    fn all_pages_cost_the_same_however_they_are_taken() {
        let model = MemoryModel { free_pages: 2, page_gas: 1000 };
        for step in 1..=128u16 {
            let (mut gas, mut pages) = (0, 0);
            while pages < 128 {
                let new = step.min(128 - pages);
                gas += model.gas(new, pages, pages);
                pages += new;
            }
            // 126 pages of 1,000 and the whole ramp.
            assert_eq!(gas, 126_000 + 31_873_999 - 1);
        }
        assert_eq!(model.gas(129, 0, 0), u64::MAX);
    }
}
