//! Has cargo compile libFuzzer; `script/fuzz` links what that leaves.
