//! Programs that ran in the current block.

use revm::primitives::B256;

/// The programs a block has run, the most recently used last.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentPrograms {
    block: u64,
    programs: Vec<B256>,
}

impl RecentPrograms {
    /// An empty list for a block.
    pub(crate) fn of_block(block: u64) -> Self {
        Self { block, programs: vec![] }
    }

    pub(crate) fn block(&self) -> u64 {
        self.block
    }

    /// Notes a run; true if the program was in the list. Undone neither by a revert nor by running out of gas.
    pub(crate) fn insert(&mut self, program: B256, size: u16) -> bool {
        let hit = self.programs.iter().position(|p| *p == program);
        match hit {
            Some(at) => {
                self.programs.remove(at);
            }
            None => {
                while self.programs.len() >= usize::from(size.max(1)) {
                    self.programs.remove(0);
                }
            }
        }
        self.programs.push(program);
        hit.is_some()
    }
}
