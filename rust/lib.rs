//! Exact tokens of served model calls: their encoding and their digest.
//!
//! The crate's types know no Python; the feature `python` adds the extension module `tokenrecords._core`.
//!
//! # The wire format, digest version 1
//!
//! The words MUST, MUST NOT and MAY are to be read as in RFC 2119.
//!
//! ## Token ids
//!
//! 1. A token id MUST be an integer from 0 to 2^64 - 1. An encoder MUST refuse any other value; it MUST NOT round,
//!    wrap or skip one.
//! 2. A sequence MAY be empty. It MAY hold up to 2^61 - 16 ids, so that the number of hashed bits fits 64 bits.
//!
//! ## Encoding
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the version, `0x01` |
//! | 8 | the number of ids, unsigned, big-endian |
//! | 8 each | the ids in order, unsigned, big-endian |
//!
//! 3. The encoding of n ids MUST be exactly these 9 + 8n bytes. The empty sequence is encoded too, in 9 bytes.
//! 4. A decoder MUST refuse another version, and a length that disagrees with the bytes that follow.
//!
//! ```
//! use tokenrecords::wire;
//!
//! let ids = [1, 258];
//! let mut out = vec![0; wire::encoded_len(ids.len()).unwrap()];
//! wire::encode(ids.as_slice(), &mut out)?;
//! assert_eq!(out[0], 1);
//! assert_eq!(out[1..9], [0, 0, 0, 0, 0, 0, 0, 2]);
//! assert_eq!(out[9..17], [0, 0, 0, 0, 0, 0, 0, 1]);
//! assert_eq!(out[17..], [0, 0, 0, 0, 0, 0, 1, 2]);
//! # Ok::<(), std::convert::Infallible>(())
//! ```
//!
//! ## Digest
//!
//! 5. The digest of a sequence MUST be SHA-256 (FIPS 180-4) over the 15 bytes `nemo-gym-tokens` followed by the
//!    encoding. As text it MUST be 64 lowercase hex digits.
//! 6. The digest of the empty sequence MUST be SHA-256 over the 15 bytes alone.
//!
//! ```
//! use tokenrecords::digest::digest;
//!
//! let hex = |hash: [u8; 32]| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
//! assert_eq!(
//!     hex(digest([].as_slice())?),
//!     "2e222d36d0c6ae1db1ec18b3f96d9a46df5db61b40137bbfbac4cdf0acde9763"
//! );
//! assert_eq!(
//!     hex(digest([0].as_slice())?),
//!     "0596efeb21b51ec6eb122c9e470703df19a095a7c5ccb96bf87df0ba2447ba59"
//! );
//! # Ok::<(), std::convert::Infallible>(())
//! ```
//!
//! The 15 bytes and the version make 16, the length makes 24: each id stands at a multiple of 8 bytes in the hashed
//! stream. The first SHA-256 block holds ids 0 to 4, each later block 8 ids. Because the length comes first, the digest
//! of a prefix shares no state with that of a longer sequence.
#![deny(unsafe_code, missing_docs)]

pub mod digest;
pub mod dtype;
pub mod files;
pub mod json;
pub mod prefixes;
mod sha256;
pub mod source;
pub mod sse;
pub mod wire;

#[cfg(test)]
mod testing;

#[cfg(feature = "python")]
mod python;
