//! Does nothing. Cargo looks at `[build-dependencies]` of packages with a build script only.

fn main() {}
