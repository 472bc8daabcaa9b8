//! Bytes as choices.

use muster_model::world::Dice;

/// The rest of an input. Beyond its end there are zeros.
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next so many bytes, or as many as there are.
    pub fn take(&mut self, length: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(length.min(self.0.len()));
        self.0 = rest;
        taken
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.take(1).first().copied().unwrap_or(0)
    }

    /// One of these.
    pub fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.byte() as usize % choices.len()]
    }

    /// A number below `n`, which is at most 256.
    pub fn below(&mut self, n: u64) -> u64 {
        u64::from(self.byte()) % n
    }

    /// 64 bits out of two bytes: as a number if it is below 4,096, else mixed.
    pub fn bits(&mut self) -> u64 {
        let number = u64::from(self.byte()) | u64::from(self.byte()) << 8;
        if number < 4_096 {
            number
        } else {
            Dice(number).bits()
        }
    }

    /// Eight bytes as a number.
    pub fn number(&mut self) -> u64 {
        let mut number = [0; 8];
        let taken = self.take(8);
        number[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(number)
    }
}
