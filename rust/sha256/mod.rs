//! The compression function of SHA-256 over lanes, by what the machine offers.
//!
//! A lane is one message being hashed. The back ends of x86-64 advance several lanes at once, because one lane alone
//! leaves most of a core idle: each round waits for the one before. No crate does that: `sha2` compresses one message.

mod backend;
mod constants;
mod portable;
mod state;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use backend::Backend;
pub use state::{Block, Hash, LANES, RUN, Run, States};
