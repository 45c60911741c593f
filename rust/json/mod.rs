//! Records as JSON: the arrays of a line, read and written without a Python object for each number.
//!
//! Reading never decides that a line is wrong: what it is not sure of it leaves to a full JSON reader.
//!
//! The scanner is our own because no crate does this part: `serde_json`, `sonic-rs` and `jiter` build a tree or events for
//! the whole line, while here one pass finds the three arrays, reads their numbers by words of eight digits and hands the
//! rest on as text. Floats are parsed by `fast-float2` (Eisel-Lemire, correctly rounded) and written by `zmij`,
//! whose shortest form is the one that orjson writes.
// Narrowing casts take the low bits of a word on purpose, or a value that was checked.
// Bitwise operators on booleans spare branches that are hard to foresee.
// What is compiled for AVX2 as well must be inlined there; else it would be compiled without.
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::needless_bitwise_bool,
    clippy::inline_always
)]

mod array;
mod ids;
mod log_probs;
pub mod scan;
mod short_ids;
mod swar;
pub mod text;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use ids::Ids;
pub use log_probs::LogProb;
