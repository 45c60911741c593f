//! Which instructions there are, and which kernel is the fastest for a number of lanes.

use super::avx512::{self, Avx512};
use super::sha_ni::{self, ShaNi};
use crate::sha256::portable;
use crate::sha256::state::{Block, LANES, States};

// Measured on a Zen 5 server core with `cargo bench --no-default-features --bench lanes -- '^lanes'`, in ns a block of
// one lane, each kernel forced by the constants: the SHA instructions take 31.8, 21.4, 21.3 and 19.1 in calls of 1 to 4
// lanes; AVX-512 takes 168 divided by the number of lanes (21.4 at 8, 19.2 at 9, 11.2 at 16); plain code takes 124.

/// The most lanes of one call of the kernel of SHA instructions: more no longer fit the sixteen registers which these
/// instructions can name.
const SHA_LANES: usize = 4;

/// From this number of lanes on the AVX-512 kernel, which always takes the time of all its lanes, is faster than the
/// SHA instructions, whose parts of 3 lanes take 21.3 ns where 9 lanes are given.
const WIDE_FROM: usize = 9;

/// The same without SHA instructions, against plain code (`--cfg sha2_backend="soft"`).
const WIDE_FROM_WITHOUT_SHA: usize = 2;

/// The instructions found on this machine.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// The SHA instructions.
    sha: Option<ShaNi>,
    /// AVX-512.
    wide: Option<Avx512>,
}

impl Features {
    /// Asks the processor; `None` if it has neither.
    pub fn detect() -> Option<Self> {
        let (sha, wide) = (ShaNi::detect(), Avx512::detect());
        (sha.is_some() || wide.is_some()).then_some(Self { sha, wide })
    }

    /// This machine's instructions in every smaller combination, as other machines have them.
    #[cfg(test)]
    pub fn fewer(self) -> Vec<Self> {
        let all = [Self { sha: self.sha, wide: None }, Self { sha: None, wide: self.wide }];
        all.into_iter().filter(|some| some.sha.is_some() || some.wide.is_some()).collect()
    }

    /// The number of lanes at which the kernels are at their best.
    pub const fn width(self) -> usize {
        if self.wide.is_some() { LANES } else { SHA_LANES }
    }

    /// Compresses the blocks of each run, all of one length.
    pub fn compress(self, states: &mut States, runs: &[&[Block]]) {
        let wide_from = if self.sha.is_some() { WIDE_FROM } else { WIDE_FROM_WITHOUT_SHA };
        if let Some(wide) = self.wide
            && runs.len() >= wide_from
        {
            return avx512::compress(wide, states, runs);
        }
        let Some(sha) = self.sha else {
            return portable::compress(states, runs);
        };
        // Parts of equal size: three and two lanes, not four and one.
        let parts = runs.len().div_ceil(SHA_LANES).max(1);
        let size = runs.len().div_ceil(parts).max(1);
        for (part, runs) in runs.chunks(size).enumerate() {
            let first = part * size;
            match *runs {
                [] => {}
                [a] => sha_ni::compress(sha, states, first, [a]),
                [a, b] => sha_ni::compress(sha, states, first, [a, b]),
                [a, b, c] => sha_ni::compress(sha, states, first, [a, b, c]),
                [a, b, c, d, ..] => sha_ni::compress(sha, states, first, [a, b, c, d]),
            }
        }
    }

    /// Calls `f` where the compiler may use AVX-512 for all that is inlined.
    #[inline]
    pub fn inside<T>(self, f: impl FnOnce() -> T) -> T {
        match self.wide {
            Some(wide) => avx512::inside(wide, f),
            None => f(),
        }
    }
}
