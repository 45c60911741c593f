//! The compression function of SHA-256 over lanes, by what the machine offers.
//!
//! A lane is one message being hashed. The kernels are our own because `sha2`, which is the portable one, advances one
//! lane: that leaves most of a core idle, for each round waits for the one before. Those of x86-64 advance several lanes
//! at once, and take native words, so that nothing is spent on the order of bytes.

mod constants;
mod kernel;
mod plan;
mod portable;
mod state;
mod vectors;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use kernel::Kernel;
pub use plan::{Plan, kernels, lone, unusable};
pub use state::{Block, Hash, LANES, RUN, Run, States};
pub use vectors::with_vectors;
