//! Programs that ran in the current block.

/// The programs a block has run, the most recently used last.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentPrograms {
    block: u64,
    programs: Vec<revm::primitives::B256>,
}
