//! Estimated time, deadline and task value (the dispatch document), and the key by which the queue is ordered.

use crate::id::TaskId;

/// The kind of a task, which decides how its time is estimated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Units are images; overhead plus a time per image.
    StableDiffusion,
    /// A constant time whatever the units.
    Gpt,
    /// Units are the seconds the creator states.
    FineTune,
}

impl Kind {
    /// The kind with this number in the interface.
    pub fn new(n: u8) -> Option<Kind> {
        match n {
            0 => Some(Kind::StableDiffusion),
            1 => Some(Kind::Gpt),
            2 => Some(Kind::FineTune),
            _ => None,
        }
    }
}

/// Seconds a running task may take, not counting the grace period: twice its estimate, clamped.
#[inline]
pub fn time_limit(estimate: u32, shortest: u16, longest: u16) -> u16 {
    (estimate as u64 * 2).clamp(shortest as u64, longest.max(shortest) as u64) as u16
}

/// Bits of a key below the value.
const ORDER: u32 = 26;

/// The key of a queued task: greater is served first, and the least of all is evicted first.
///
/// The upper 38 bits are fee / estimate as a float with 32 significant bits (7 of exponent, 31 of mantissa after the leading one), rounded
/// down. The lower 26 bits fall with the task's id, so that among equal values the earlier task is the greater key. Two equal values
/// compare by arrival as long as fewer than 2^26 tasks were created between them. Keys 0 and 1 are never made: they mean "none".
#[inline]
pub fn key(fee: u128, estimate: u32, id: TaskId) -> u64 {
    let v = (fee.max(1) << 31) / estimate.max(1) as u128;
    let bits = 128 - v.leading_zeros();
    let mantissa = if bits > 32 { (v >> (bits - 32)) as u64 } else { (v as u64) << (32 - bits) };
    let float = (bits as u64) << 31 | (mantissa & 0x7fff_ffff);
    float << ORDER | (!id.0 & ((1 << ORDER) - 1))
}

/// Whether two keys stand for the same task value.
#[inline]
pub fn value_of_key(key: u64) -> u64 {
    key >> ORDER
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn higher_value_first_then_earlier() {
        let e18 = 1_000_000_000_000_000_000u128;
        // 10 per 50 s against 15 per 70 s: the example of the pricing page.
        assert!(key(15 * e18, 70, TaskId(9)) > key(10 * e18, 50, TaskId(1)));
        assert!(key(10 * e18, 50, TaskId(1)) > key(10 * e18, 50, TaskId(2)));
        assert!(key(20 * e18, 100, TaskId(1)) > key(10 * e18, 50, TaskId(2)));
        assert!(key(1, 0xff_ffff, TaskId(1)) > 1);
        assert!(key((1 << 96) - 1, 1, TaskId(u64::MAX)) < u64::MAX);
        assert!(key(10 * e18 + 10_000_000_000, 50, TaskId(2)) > key(10 * e18, 50, TaskId(1)));
    }

    #[test]
    fn values_that_differ_in_the_32nd_bit_differ() {
        for shift in 0..60u32 {
            let a = (0x8000_0001u128) << shift;
            let b = (0x8000_0002u128) << shift;
            assert!(key(b, 1, TaskId(5)) > key(a, 1, TaskId(4)));
            assert!(key(b, 7, TaskId(5)) > key(a, 7, TaskId(4)));
        }
    }

    #[test]
    fn limits_are_clamped() {
        assert_eq!(time_limit(10, 60, 7200), 60);
        assert_eq!(time_limit(50, 60, 7200), 100);
        assert_eq!(time_limit(9000, 60, 7200), 7200);
    }
}
