//! Tight-fit alone, as a Stylus program: `script/bench search` measures the cost of its second search.
//!
//! Input: 1 for neighbours alone or 2 for both searches, Rmin, Rmax, how often it is searched, the target and the ratings, falling, each in eight bytes, big-endian.
//! Output: the group's size and the evaluations of one search.
#![cfg_attr(target_arch = "wasm32", no_std)]
// A program is called by its exported name, and its host through functions that are none of Rust's.
#![allow(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use muster_core::reputation::{tight_fit, tight_fit_of_neighbours, Exact, Fallback, Rule};

/// Searches as the input says; nothing where it says nothing.
pub fn search(input: &[u8]) -> Option<[u8; 2]> {
    let (&[which, min, max, times], numbers) = input.split_first_chunk()?;
    let mut numbers = numbers.chunks_exact(8).map(|bytes| bytes.iter().fold(0, |sum, &byte| sum << 8 | u64::from(byte)));
    let rule = Rule::new(min.into(), max.into(), numbers.next()?).ok()?;
    let ratings: Vec<u64> = numbers.collect();
    let mut found = None;
    for _ in 0..times {
        let mut free = ratings.clone();
        found = match which {
            1 => tight_fit_of_neighbours::<_, Exact>(&mut free, &rule, Fallback::Largest),
            _ => tight_fit::<_, Exact>(&mut free, &rule, Fallback::Largest),
        };
    }
    found.map(|formed| [formed.size as u8, formed.evaluations as u8])
}

#[cfg(target_arch = "wasm32")]
mod program {
    use super::*;
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::Cell;

    #[link(wasm_import_module = "vm_hooks")]
    extern "C" {
        fn read_args(to: *mut u8);
        fn write_result(from: *const u8, length: usize);
        fn pay_for_memory_grow(pages: u16);
    }

    /// Gives memory of one page and takes none back: one call needs no more.
    struct Once(Cell<usize>);
    // A program has one thread.
    unsafe impl Sync for Once {}
    unsafe impl GlobalAlloc for Once {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            static mut ROOM: [u8; 24 << 10] = [0; 24 << 10];
            let at = self.0.get().next_multiple_of(layout.align());
            self.0.set(at + layout.size());
            if at + layout.size() > 24 << 10 {
                return core::ptr::null_mut();
            }
            (&raw mut ROOM).cast::<u8>().wrapping_add(at)
        }
        unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
    }
    #[global_allocator]
    static MEMORY: Once = Once(Cell::new(0));

    #[panic_handler]
    fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
        core::arch::wasm32::unreachable()
    }

    /// Answers a call.
    #[no_mangle]
    pub extern "C" fn user_entrypoint(length: usize) -> usize {
        let mut input = alloc::vec![0; length];
        // Stylus wants this import of every program; without pages it costs nothing.
        unsafe {
            pay_for_memory_grow(0);
            read_args(input.as_mut_ptr());
        }
        let Some(output) = search(&input) else { return 1 };
        unsafe { write_result(output.as_ptr(), output.len()) };
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HUNDREDTH: u64 = 10_000_000_000_000_000;

    fn input(which: u8, target: u64, ratings: &[u64]) -> Vec<u8> {
        let numbers = [target].into_iter().chain(ratings.iter().copied()).flat_map(u64::to_be_bytes);
        [which, 3, 7, 2].into_iter().chain(numbers).collect()
    }

    #[test]
    fn both_searches_are_those_of_the_core() {
        let ratings = [90, 80, 70, 60, 50, 40].map(|share| share * HUNDREDTH);
        let [neighbours, both] = [1, 2].map(|which| search(&input(which, 70 * HUNDREDTH, &ratings)).unwrap());
        assert_eq!((neighbours[0], both[0]), (3, 3));
        assert!(both[1] > neighbours[1], "{neighbours:?}, {both:?}");
    }

    #[test]
    fn what_is_no_question_has_no_answer() {
        assert_eq!([&[][..], &[1, 3, 7], &[1, 7, 3, 1, 0, 0, 0, 0, 0, 0, 0, 0]].map(search), [None; 3]);
    }
}
