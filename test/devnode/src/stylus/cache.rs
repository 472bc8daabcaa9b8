//! Compiled programs.

/// Compiled programs by code hash.
#[derive(Debug)]
pub(crate) struct ModuleCache {}

impl ModuleCache {
    pub(crate) fn new() -> Self {
        Self {}
    }
}
