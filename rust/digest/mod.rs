//! Digests: of one sequence, and of many, several at once on each core and then by threads.

mod batch;
mod message;
mod one;
pub mod staging;
mod worker;

pub use crate::sha256::{Hash, Kernel, kernels, unusable};
pub use batch::{Stopped, digest_many};
pub use one::digest;
