//! The compression function by the instructions of x86-64.

pub mod avx512;
pub mod sha_ni;
