//! The compression function by the instructions of x86-64.

mod avx512;
mod features;
mod sha_ni;

pub use features::Features;
