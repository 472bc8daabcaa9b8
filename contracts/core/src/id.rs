//! What numbers stand for: each of these is a number of its own type, so that none is taken for another.
//!
//! All are fields of packed records, as wide as the record makes them.

use crate::word::{Field, Word};

macro_rules! id {
    ($(#[$doc:meta])* pub struct $name:ident($number:ty);) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(transparent)]
        pub struct $name(pub $number);

        impl Field for $name {
            #[inline(always)]
            fn read(w: &Word, at: u32, width: u32) -> Self {
                $name(Field::read(w, at, width))
            }
            #[inline(always)]
            fn write(&self, w: &mut Word, at: u32, width: u32) {
                self.0.write(w, at, width)
            }
        }
    };
}

id! {
    /// A node's number, from 1; it stays with its operator for good. 0 is no node.
    pub struct NodeId(u32);
}

id! {
    /// A task's number, from 1 in order of creation. 0 is no task.
    pub struct TaskId(u64);
}

id! {
    /// A model's number, given by whoever uses it; at most 40 bits. 0 is no model.
    pub struct ModelId(u64);
}

id! {
    /// A GPU model of one VRAM size, or any GPU from a VRAM size up.
    ///
    /// ```text
    /// | gpu | vram |
    ///   16     16
    /// ```
    ///
    /// `gpu` is the number of the GPU model among those of its VRAM size, from 1 in order of first join; 0 stands for any.
    /// `vram` is in GiB.
    pub struct GpuGroup(u32);
}

impl GpuGroup {
    /// Any GPU with at least this much VRAM.
    #[inline(always)]
    pub const fn any(vram: u16) -> GpuGroup {
        GpuGroup(vram as u32)
    }

    /// The GPU model of a number, from 1, among those of exactly this VRAM size.
    #[inline(always)]
    pub const fn of(gpu: u16, vram: u16) -> GpuGroup {
        GpuGroup((gpu as u32) << 16 | vram as u32)
    }

    /// The GPU model's number among those of its VRAM size, from 1; 0 for any GPU.
    #[inline(always)]
    pub const fn gpu(self) -> u16 {
        (self.0 >> 16) as u16
    }

    /// VRAM in GiB: exactly this much, or with [`GpuGroup::is_any`] at least this much.
    #[inline(always)]
    pub const fn vram(self) -> u16 {
        self.0 as u16
    }

    /// Whether it stands for every GPU with enough VRAM.
    #[inline(always)]
    pub const fn is_any(self) -> bool {
        self.gpu() == 0
    }
}

id! {
    /// A queued task's place. It changes hands: once the task has left the queue, another may get the same.
    ///
    /// ```text
    /// | group | place |
    ///    32      32
    /// ```
    pub struct Ticket(u64);
}

impl Ticket {
    /// A place among the queued tasks that require `group`.
    #[inline(always)]
    pub const fn new(group: GpuGroup, place: u32) -> Ticket {
        Ticket((group.0 as u64) << 32 | place as u64)
    }

    /// What the task requires.
    #[inline(always)]
    pub const fn group(self) -> GpuGroup {
        GpuGroup((self.0 >> 32) as u32)
    }

    /// The place among the queued tasks that require the same, from 0.
    #[inline(always)]
    pub const fn place(self) -> u32 {
        self.0 as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::word::Packed;

    packed! {
        /// A record of nothing but ids.
        pub struct Sample {
            node: NodeId = "uint24" 24,
            task: TaskId = "uint40" 40,
            model: ModelId = "uint40" 40,
            group: GpuGroup = "uint32" 32,
            ticket: Ticket = "uint64" 64,
        }
    }

    #[test]
    fn ids_are_packed_as_their_numbers() {
        let group = GpuGroup::of(65_534, 80);
        let s = Sample {
            node: NodeId((1 << 24) - 2),
            task: TaskId((1 << 40) - 3),
            model: ModelId((1 << 40) - 4),
            group,
            ticket: Ticket::new(group, u32::MAX - 5),
        };
        assert_eq!(Sample::unpack(s.pack()), s);
        let alone = Sample { model: s.model, ..Default::default() };
        let mut w = Word::ZERO;
        w.set_bits(64, 40, (1 << 40) - 4);
        assert_eq!(alone.pack(), w);
        assert_eq!(Sample::unpack(Word::ZERO), Sample::default());
    }

    #[test]
    fn a_gpu_group_is_a_model_of_a_size_or_any_from_a_size_up() {
        for vram in [0, 1, 24, u16::MAX] {
            let any = GpuGroup::any(vram);
            assert_eq!((any.gpu(), any.vram(), any.is_any(), any.0), (0, vram, true, vram.into()));
            for gpu in [1, 2, u16::MAX] {
                let one = GpuGroup::of(gpu, vram);
                assert_eq!((one.gpu(), one.vram(), one.is_any()), (gpu, vram, false));
                assert_eq!(one.0, u32::from(gpu) * 0x1_0000 + u32::from(vram));
            }
            assert_eq!(GpuGroup::of(0, vram), any);
        }
    }

    #[test]
    fn a_ticket_is_a_place_in_a_group() {
        for group in [GpuGroup::any(24), GpuGroup::of(1, 24), GpuGroup::of(u16::MAX, u16::MAX)] {
            for place in [0, 7, u32::MAX] {
                let ticket = Ticket::new(group, place);
                assert_eq!((ticket.group(), ticket.place()), (group, place));
                assert_eq!(ticket.0, u64::from(group.0) << 32 | u64::from(place));
            }
        }
        // Tickets of one group follow each other, as the interface shows them.
        assert_eq!(Ticket::new(GpuGroup::of(2, 80), 3), Ticket(0x0002_0050_0000_0003));
    }
}
