//! placeholder
#![deny(unsafe_code, missing_docs)]
pub mod digest;
pub mod ints;
pub mod source;
pub mod wire;

#[cfg(feature = "python")]
mod python;
