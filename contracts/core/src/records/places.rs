packed! {
    /// The places of validation groups.
    ///
    /// ```text
    /// |  -  | live | free | issued |
    ///   160    32     32      32
    /// ```
    pub struct Places {
        /// Number of places; they are numbered from 1.
        issued: u32 = "uint32" 32,
        /// The free place that is used next; it names the one after it. 0 for none.
        free: u32 = "uint32" 32,
        /// Places in use.
        live: u32 = "uint32" 32,
    }
}

impl Places {
    /// The place that the next group takes: a free one, or a new one.
    pub fn next(&self) -> u32 {
        if self.free > 0 {
            self.free
        } else {
            self.issued + 1
        }
    }
}
