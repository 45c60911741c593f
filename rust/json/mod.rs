//! Records and served bodies as JSON: their arrays, read and written without an object for each number.
//!
//! Reading never decides that a text is wrong: what it is not sure of it leaves to a full JSON reader.
//!
//! The scanner is our own because no crate does this part: `serde_json`, `sonic-rs` and `jiter` build a tree or events
//! for the whole text, while here one pass finds the arrays, reads their numbers by words of eight digits and hands the
//! rest on as text. Floats are parsed by `fast-float2` (Eisel-Lemire, correctly rounded) and written by
//! `zmij` (the shortest text that reads back).

mod array;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod backend;
mod body;
mod chunks;
mod columns;
mod entry;
mod halt;
mod ids;
mod int_text;
mod log_probs;
mod members;
mod numbers;
mod scan;
mod short_ids;
mod skip;
mod strict;
mod swar;
mod text;
mod walk;
mod words;

pub(crate) use array::trim;
pub use backend::{instructions, push_ints};
pub use body::{Body, Found, Step, Value, scan_body};
pub use chunks::{Rule, Rules, join_chunks};
pub use columns::Columns;
pub use halt::Halt;
pub use ids::Ids;
pub use int_text::Int;
pub use log_probs::LogProb;
pub use members::Members;
pub use numbers::Numbers;
pub use scan::{Scanned, scan_record};
pub use text::{push_float, push_floats, push_string};
pub use words::Words;
