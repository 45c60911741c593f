//! Which instructions there are, and which kernel is the fastest for a number of lanes.
#![expect(unsafe_code, reason = "calls of functions that need detected instructions")]

use std::arch::is_x86_feature_detected;

use super::{avx512, sha_ni};
use crate::sha256::portable;
use crate::sha256::state::{Block, LANES, States};

/// The most lanes of one call of the kernel of SHA instructions. Two already hide the latency of these instructions on
/// Intel; more than four no longer fit the sixteen registers which they can name.
const SHA_LANES: usize = 4;

/// From this number of lanes on the AVX-512 kernel, which always takes the time of all its lanes, is faster than the SHA
/// instructions.
const WIDE_FROM: usize = 10;

/// The same without SHA instructions, against plain code.
const WIDE_FROM_WITHOUT_SHA: usize = 3;

/// The instructions found on this machine. The fields are private to this module, so a value is the proof that the
/// instructions which it names are there.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// The SHA instructions, with SSSE3 and SSE4.1.
    sha: bool,
    /// AVX-512F.
    wide: bool,
}

impl Features {
    /// Asks the processor; `None` if it has neither.
    pub fn detect() -> Option<Self> {
        let sha =
            is_x86_feature_detected!("sha") && is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.1");
        let wide = is_x86_feature_detected!("avx512f");
        (sha || wide).then_some(Self { sha, wide })
    }

    /// This machine's instructions in every smaller combination, as other machines have them.
    #[cfg(test)]
    pub fn fewer(self) -> Vec<Self> {
        let all = [Self { sha: self.sha, wide: false }, Self { sha: false, wide: self.wide }];
        all.into_iter().filter(|some| some.sha || some.wide).collect()
    }

    /// The number of lanes at which the kernels are at their best.
    pub const fn width(self) -> usize {
        if self.wide { LANES } else { SHA_LANES }
    }

    /// Compresses the blocks of each run, all of one length.
    pub fn compress(self, states: &mut States, runs: &[&[Block]]) {
        let wide_from = if self.sha { WIDE_FROM } else { WIDE_FROM_WITHOUT_SHA };
        if self.wide && runs.len() >= wide_from {
            // SAFETY: `wide` is set only where AVX-512F was detected.
            return unsafe { avx512::compress(states, runs) };
        }
        if !self.sha {
            return portable::compress(states, runs);
        }
        // Parts of equal size: three and two lanes, not four and one.
        let parts = runs.len().div_ceil(SHA_LANES).max(1);
        let size = runs.len().div_ceil(parts).max(1);
        for (part, runs) in runs.chunks(size).enumerate() {
            let first = part * size;
            // SAFETY: `sha` is set only where the SHA instructions, SSSE3 and SSE4.1 were detected.
            unsafe {
                match *runs {
                    [] => {}
                    [a] => sha_ni::compress(states, first, [a]),
                    [a, b] => sha_ni::compress(states, first, [a, b]),
                    [a, b, c] => sha_ni::compress(states, first, [a, b, c]),
                    [a, b, c, d, ..] => sha_ni::compress(states, first, [a, b, c, d]),
                }
            }
        }
    }

    /// Calls `f` where the compiler may use AVX-512 for all that is inlined.
    pub fn inside<T>(self, f: impl FnOnce() -> T) -> T {
        if self.wide {
            // SAFETY: `wide` is set only where AVX-512F was detected.
            unsafe { wide(f) }
        } else {
            f()
        }
    }
}

/// Calls `f`; what is inlined of it is compiled for AVX-512.
#[target_feature(enable = "avx512f")]
fn wide<T>(f: impl FnOnce() -> T) -> T {
    f()
}
