//! Ids: each kind of number has its own type, so that none is taken for another.
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
    /// A model's number, given by its users; at most 40 bits. 0 is no model.
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

/// The kind of queued work: grades have queues of their own (the earlier dispatch documents, "Task Grading").
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[repr(u8)]
pub enum Grade {
    /// Tasks that start on one node.
    #[default]
    Single = 0,
    /// Tasks for three nodes of any kind.
    Mixed = 1,
    /// Tasks for three nodes of one GPU group, whose answers must be equal bit by bit.
    Alike = 2,
    /// Tasks for several nodes that are chosen by their ratings.
    Rated = 3,
}

id! {
    /// A queue: the GPU group that its tasks require, and their [`Grade`].
    ///
    /// ```text
    /// | gpu | grade | vram |
    ///   16      4      12
    /// ```
    pub struct QueueId(u32);
}

impl QueueId {
    const VRAM_BITS: u32 = 12;

    /// The queue of a grade's tasks that require `group`, whose VRAM is below 4,096 GiB.
    #[inline(always)]
    pub const fn new(group: GpuGroup, grade: Grade) -> QueueId {
        QueueId(group.0 | (grade as u32) << QueueId::VRAM_BITS)
    }

    /// The GPU group that its tasks require.
    #[inline(always)]
    pub const fn group(self) -> GpuGroup {
        GpuGroup(self.0 & !(15 << QueueId::VRAM_BITS))
    }

    /// Their grade as a number.
    #[inline(always)]
    pub const fn grade(self) -> u8 {
        (self.0 >> QueueId::VRAM_BITS) as u8 & 15
    }
}

id! {
    /// A queued task's place. It changes hands: once the task has left the queue, another may get the same.
    ///
    /// ```text
    /// | queue | place |
    ///    32      32
    /// ```
    pub struct Ticket(u64);
}

impl Ticket {
    /// A place of a queue.
    #[inline(always)]
    pub const fn new(queue: QueueId, place: u32) -> Ticket {
        Ticket((queue.0 as u64) << 32 | place as u64)
    }

    /// The queue.
    #[inline(always)]
    pub const fn queue(self) -> QueueId {
        QueueId((self.0 >> 32) as u32)
    }

    /// The place in it, from 0.
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
        /// A record of ids alone.
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
            ticket: Ticket::new(QueueId::new(group, Grade::Alike), u32::MAX - 5),
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
    fn a_ticket_is_a_place_in_a_queue_and_a_queue_a_grade_of_a_group() {
        for group in [GpuGroup::any(24), GpuGroup::of(1, 24), GpuGroup::of(u16::MAX, 960)] {
            for (number, grade) in [Grade::Single, Grade::Mixed, Grade::Alike, Grade::Rated].into_iter().enumerate() {
                let queue = QueueId::new(group, grade);
                assert_eq!((queue.group(), queue.grade() as usize), (group, number));
                assert_eq!(queue.0, group.0 + 4096 * number as u32);
                for place in [0, 7, u32::MAX] {
                    let ticket = Ticket::new(queue, place);
                    assert_eq!((ticket.queue(), ticket.place()), (queue, place));
                    assert_eq!(ticket.0, u64::from(queue.0) << 32 | u64::from(place));
                }
            }
        }
        // Tickets of one queue follow each other, as the interface shows them.
        assert_eq!(Ticket::new(QueueId::new(GpuGroup::of(2, 80), Grade::Single), 3), Ticket(0x0002_0050_0000_0003));
    }
}
