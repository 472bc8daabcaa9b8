//! Has cargo compile libFuzzer; `script/fuzz` links the result.
