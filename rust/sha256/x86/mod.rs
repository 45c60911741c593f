//! The compression function by the instructions of x86-64.

pub mod avx2;
pub mod avx512;
mod rounds;
pub mod sha_ni;
