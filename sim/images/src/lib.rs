//! Perceptual hashes of images, as nodes answer with them: their power and limits.
//!
//! - [`hashing`] how a node hashes an image: the settings, and others they were compared with
//! - [`scenes`] images with structure, painted from numbers
//! - [`diffusion`] images out of noise, step by step
//! - [`photos`] photographs of a folder
//! - [`changes`] changes of an image on its way, and edits
//! - [`forging`] images made for a given hash
//! - [`random`] the simulator's random numbers
//! - [`study`] all of it measured
//! - [`page`] the page about it
//!
//! Built and run by `script/sim images` alone: nothing else of the project needs image formats.

pub mod changes;
pub mod diffusion;
pub mod forging;
pub mod hashing;
pub mod page;
pub mod photos;
/// The simulator's own.
#[path = "../../src/random.rs"]
pub mod random;
pub mod scenes;
pub mod study;
