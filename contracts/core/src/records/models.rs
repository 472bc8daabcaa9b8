use crate::id::ModelId;

/// Model ids in one word.
pub const MODELS_PER_WORD: u32 = 6;
/// Most models a task can require.
pub const TASK_MODELS: usize = 8;
/// Most models a node can hold, counting removed ones not yet purged.
pub const NODE_MODELS: u32 = 32;
/// Most models that one call can add to a node's: 12 new models without other holders, beside a due draw, would cost more than a
/// million gas.
pub const CALL_MODELS: usize = 10;

packed! {
    /// Six model ids (40 bits each, 0 for none) and a flag for each.
    ///
    /// Among a node's models a flag means "removed": the node is still in the model's holder array, but no longer has the model.
    /// Among a task's models `flags` counts those of both words.
    ///
    /// ```text
    /// | used | flags | m5 | m4 | m3 | m2 | m1 | m0 |
    ///    8       8     40   40   40   40   40   40
    /// ```
    pub struct Models {
        /// First model.
        m0: ModelId = "uint40" 40,
        /// Second model.
        m1: ModelId = "uint40" 40,
        /// Third model.
        m2: ModelId = "uint40" 40,
        /// Fourth model.
        m3: ModelId = "uint40" 40,
        /// Fifth model.
        m4: ModelId = "uint40" 40,
        /// Sixth model.
        m5: ModelId = "uint40" 40,
        /// Bit i is the flag of model i.
        flags: u8 = "uint8" 8,
        /// Always 1 once written, so that the word never falls back to zero.
        used: u8 = "uint8" 8,
    }
}

impl Models {
    /// The value that prewarms a word: it makes the word differ from zero. Read as an [`super::Order`] or [`super::Escrow`] it shows no
    /// task, models or members.
    pub const OPENED: Models = Models {
        m0: ModelId(0),
        m1: ModelId(0),
        m2: ModelId(0),
        m3: ModelId(0),
        m4: ModelId(0),
        m5: ModelId(0),
        flags: 0,
        used: 1,
    };
}
