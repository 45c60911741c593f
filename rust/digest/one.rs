//! The digest of one sequence.

use super::message::Message;
use crate::sha256::{Hash, Kernel, Run, States, lone, with_vectors};
use crate::source::Source;

/// The digest of `source`: SHA-256 over the domain and the encoding, or over the domain alone for no ids.
///
/// # Errors
/// The first element that is not a token id.
pub fn digest<S: Source + ?Sized>(source: &S) -> Result<Hash, S::Error> {
    digest_by(lone(), source)
}

/// The same by a given kernel.
///
/// The processor fills the next run while it still waits for the rounds of the current one: the two depend on each
/// other only through the buffer, and a lone lane leaves most execution units idle.
fn digest_by<S: Source + ?Sized>(kernel: Kernel, source: &S) -> Result<Hash, S::Error> {
    let mut message = Message::new(source);
    let mut states = States::new();
    let mut run = Run::new();
    while message.left() > 0 {
        let count = with_vectors(
            #[inline(always)]
            || message.fill(&mut run.0),
        )?;
        kernel.compress(&mut states, 0, &[&run.0[..count]]);
    }
    Ok(states.digest(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sha256::RUN;
    use crate::testing::{Ids, expected};

    /// A digest in hexadecimal digits.
    fn hex(digest: Hash) -> String {
        digest.map(|byte| format!("{byte:02x}")).concat()
    }

    #[test]
    fn known_digests() {
        let known: [(&[i64], &str); 4] = [
            (&[], "2e222d36d0c6ae1db1ec18b3f96d9a46df5db61b40137bbfbac4cdf0acde9763"),
            (&[0], "0596efeb21b51ec6eb122c9e470703df19a095a7c5ccb96bf87df0ba2447ba59"),
            (&[1], "2a31d56e5a09bbc44221c8e3efa0c5e869406e312556abcc54f6d80195319b75"),
            (&[0, 0], "294be8bfc3822cf4cc9a966adffb5e9a8a90cbf4db3326542e6e6811f3ccf0f4"),
        ];
        for (ids, expected) in known {
            assert_eq!(hex(digest(&Ids(ids.to_vec())).unwrap()), expected, "{ids:?}");
        }
    }

    #[test]
    fn every_kernel_at_every_block_edge() {
        let run = 8 * RUN;
        for kernel in Kernel::all() {
            for len in (0..=40).chain(run - 8..=run + 8).chain([3 * run, 10_007]) {
                let ids = Ids::new(len, 5);
                assert_eq!(digest_by(kernel, &ids), Ok(expected(&ids.0)), "{kernel:?} {len}");
            }
        }
    }

    #[test]
    fn a_fault_anywhere() {
        for at in [0, 5, 6, 500] {
            let mut ids = Ids::new(501, 5);
            ids.0[at] = -7;
            assert_eq!(digest(&ids), Err(-7));
        }
    }
}
