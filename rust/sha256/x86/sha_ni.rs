//! The kernel of the SHA instructions: `N` lanes whose rounds are interleaved, so that one lane computes while another
//! waits for its last round.
//!
//! The loops over lanes are plain loops: a closure in `array::map` would not be inlined, since `map` is compiled
//! without these instructions.
#![expect(unsafe_code, reason = "a call of a function that needs detected instructions")]
#![expect(clippy::needless_range_loop, reason = "one index goes through several arrays")]

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_alignr_epi8, _mm_extract_epi32, _mm_set_epi32, _mm_set_epi64x, _mm_setzero_si128,
    _mm_sha256msg1_epu32, _mm_sha256msg2_epu32, _mm_sha256rnds2_epu32, _mm_shuffle_epi32,
};

use crate::sha256::constants::K;
use crate::sha256::state::{Block, States};

/// The instructions found on this machine. The field is private, so a value is the proof that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShaNi(());

impl ShaNi {
    /// Asks the processor; `None` if one of them is missing.
    pub fn detect() -> Option<Self> {
        let all =
            is_x86_feature_detected!("sha") && is_x86_feature_detected!("ssse3") && is_x86_feature_detected!("sse4.1");
        all.then_some(Self(()))
    }
}

/// The numbers of lanes that one call can interleave.
pub const WIDTHS: [usize; 5] = [1, 2, 3, 4, 8];

/// Compresses the blocks of each run, all of one length, into the lanes from `first` on.
#[inline]
pub fn compress(sha: ShaNi, states: &mut States, first: usize, runs: &[&[Block]]) {
    match *runs {
        [] => {}
        [a] => compress_lanes(sha, states, first, [a]),
        [a, b] => compress_lanes(sha, states, first, [a, b]),
        [a, b, c] => compress_lanes(sha, states, first, [a, b, c]),
        [a, b, c, d] => compress_lanes(sha, states, first, [a, b, c, d]),
        [a, b, c, d, e, f, g, h] => compress_lanes(sha, states, first, [a, b, c, d, e, f, g, h]),
        [a, b, c, d, ref more @ ..] => {
            compress_lanes(sha, states, first, [a, b, c, d]);
            compress(sha, states, first + 4, more);
        }
    }
}

#[inline]
fn compress_lanes<const N: usize>(_: ShaNi, states: &mut States, first: usize, runs: [&[Block]; N]) {
    // SAFETY: a `ShaNi` exists only where the instructions were detected.
    unsafe { compress_inside(states, first, runs) }
}

#[target_feature(enable = "sha,ssse3,sse4.1")]
fn compress_inside<const N: usize>(states: &mut States, first: usize, runs: [&[Block]; N]) {
    let mut abef = [_mm_setzero_si128(); N];
    let mut cdgh = [_mm_setzero_si128(); N];
    for lane in 0..N {
        let [a, b, c, d, e, f, g, h] = states.get(first + lane);
        abef[lane] = quad([f, e, b, a]);
        cdgh[lane] = quad([h, g, d, c]);
    }
    let count = runs.iter().map(|run| run.len()).min().unwrap_or(0);
    for block in 0..count {
        let (old_abef, old_cdgh) = (abef, cdgh);
        let mut message = [[_mm_setzero_si128(); 4]; N];
        for lane in 0..N {
            message[lane] = load(&runs[lane][block]);
        }
        // Four rounds of every lane, then optionally its message words of sixteen rounds later.
        macro_rules! rounds {
            ($k:expr, $i:literal $(, $schedule:ident)?) => {
                let k = quad($k[$i]);
                for lane in 0..N {
                    let words = &mut message[lane];
                    let sum = _mm_add_epi32(words[$i], k);
                    cdgh[lane] = _mm_sha256rnds2_epu32(cdgh[lane], abef[lane], sum);
                    let sum = _mm_shuffle_epi32::<0x0E>(sum);
                    abef[lane] = _mm_sha256rnds2_epu32(abef[lane], cdgh[lane], sum);
                    $(words[$i] = $schedule(words, $i);)?
                }
            };
        }
        for k in &K[..3] {
            let k = k.as_chunks().0;
            rounds!(k, 0, schedule);
            rounds!(k, 1, schedule);
            rounds!(k, 2, schedule);
            rounds!(k, 3, schedule);
        }
        let k = K[3].as_chunks().0;
        rounds!(k, 0);
        rounds!(k, 1);
        rounds!(k, 2);
        rounds!(k, 3);
        for lane in 0..N {
            abef[lane] = _mm_add_epi32(abef[lane], old_abef[lane]);
            cdgh[lane] = _mm_add_epi32(cdgh[lane], old_cdgh[lane]);
        }
    }
    for lane in 0..N {
        let [f, e, b, a] = unquad(abef[lane]);
        let [h, g, d, c] = unquad(cdgh[lane]);
        states.set(first + lane, [a, b, c, d, e, f, g, h]);
    }
}

/// The sixteen message words of a block. A native 64-bit word has its two message words in the wrong order only.
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn load(block: &Block) -> [__m128i; 4] {
    let mut words = [_mm_setzero_si128(); 4];
    for (words, &[low, high]) in words.iter_mut().zip(block.as_chunks().0) {
        let pair = _mm_set_epi64x(high.cast_signed(), low.cast_signed());
        *words = _mm_shuffle_epi32::<0xB1>(pair);
    }
    words
}

/// The four message words that follow sixteen, of which the first four are at `i` in a ring.
#[target_feature(enable = "sha,ssse3,sse4.1")]
fn schedule(words: &[__m128i; 4], i: usize) -> __m128i {
    let [w0, w1, w2, w3] = [words[i], words[(i + 1) % 4], words[(i + 2) % 4], words[(i + 3) % 4]];
    let sum = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8::<4>(w3, w2));
    _mm_sha256msg2_epu32(sum, w3)
}

/// Four words as a vector.
#[target_feature(enable = "sse2")]
fn quad([a, b, c, d]: [u32; 4]) -> __m128i {
    _mm_set_epi32(d.cast_signed(), c.cast_signed(), b.cast_signed(), a.cast_signed())
}

/// A vector as four words.
#[target_feature(enable = "sse4.1")]
fn unquad(quad: __m128i) -> [u32; 4] {
    [
        _mm_extract_epi32::<0>(quad).cast_unsigned(),
        _mm_extract_epi32::<1>(quad).cast_unsigned(),
        _mm_extract_epi32::<2>(quad).cast_unsigned(),
        _mm_extract_epi32::<3>(quad).cast_unsigned(),
    ]
}
