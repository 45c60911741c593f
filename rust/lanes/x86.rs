//! SHA-256 compression by the instructions of x86-64. This module and its
//! children are the only ones with unsafe code: calls of functions that need
//! detected instructions, and vector loads and stores.
#![allow(unsafe_code)]

mod avx512;
mod sha;

use std::arch::is_x86_feature_detected;

use super::backend::{LANES, States};
use super::portable;
use crate::words::Block;

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
                    [a] => sha::compress(states, first, [a]),
                    [a, b] => sha::compress(states, first, [a, b]),
                    [a, b, c] => sha::compress(states, first, [a, b, c]),
                    [a, b, c, d, ..] => sha::compress(states, first, [a, b, c, d]),
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

/// The round constants, by sixteen rounds.
static K: [[u32; 16]; 4] = [
    [
        0x428a_2f98,
        0x7137_4491,
        0xb5c0_fbcf,
        0xe9b5_dba5,
        0x3956_c25b,
        0x59f1_11f1,
        0x923f_82a4,
        0xab1c_5ed5,
        0xd807_aa98,
        0x1283_5b01,
        0x2431_85be,
        0x550c_7dc3,
        0x72be_5d74,
        0x80de_b1fe,
        0x9bdc_06a7,
        0xc19b_f174,
    ],
    [
        0xe49b_69c1,
        0xefbe_4786,
        0x0fc1_9dc6,
        0x240c_a1cc,
        0x2de9_2c6f,
        0x4a74_84aa,
        0x5cb0_a9dc,
        0x76f9_88da,
        0x983e_5152,
        0xa831_c66d,
        0xb003_27c8,
        0xbf59_7fc7,
        0xc6e0_0bf3,
        0xd5a7_9147,
        0x06ca_6351,
        0x1429_2967,
    ],
    [
        0x27b7_0a85,
        0x2e1b_2138,
        0x4d2c_6dfc,
        0x5338_0d13,
        0x650a_7354,
        0x766a_0abb,
        0x81c2_c92e,
        0x9272_2c85,
        0xa2bf_e8a1,
        0xa81a_664b,
        0xc24b_8b70,
        0xc76c_51a3,
        0xd192_e819,
        0xd699_0624,
        0xf40e_3585,
        0x106a_a070,
    ],
    [
        0x19a4_c116,
        0x1e37_6c08,
        0x2748_774c,
        0x34b0_bcb5,
        0x391c_0cb3,
        0x4ed8_aa4a,
        0x5b9c_ca4f,
        0x682e_6ff3,
        0x748f_82ee,
        0x78a5_636f,
        0x84c8_7814,
        0x8cc7_0208,
        0x90be_fffa,
        0xa450_6ceb,
        0xbef9_a3f7,
        0xc671_78f2,
    ],
];
