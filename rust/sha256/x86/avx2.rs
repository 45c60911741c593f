//! The AVX2 kernel: eight lanes, one in each 32-bit element of a vector. It is for processors without SHA instructions.
#![expect(unsafe_code, reason = "calls of functions that need detected instructions, and vector loads and stores")]

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm_cvtsi32_si128, _mm256_add_epi32, _mm256_and_si256, _mm256_loadu_si256, _mm256_or_si256,
    _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_sll_epi32, _mm256_srli_epi32,
    _mm256_storeu_si256, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64, _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
    _mm256_xor_si256,
};

use super::rounds::sixteen;
use crate::sha256::constants::K;
use crate::sha256::state::{Block, States};

/// The number of lanes.
pub const LANES: usize = 8;

/// The instructions found on this machine. The field is private, so a value is the proof that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx2(());

impl Avx2 {
    /// Asks the processor; `None` if it has them not.
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }
}

/// Compresses the blocks of each run, all of one length, into the lanes from `first` on.
#[inline]
pub fn compress(_: Avx2, states: &mut States, first: usize, runs: &[&[Block]]) {
    // SAFETY: an `Avx2` exists only where the instructions were detected.
    unsafe { compress_inside(states, first, runs) }
}

#[target_feature(enable = "avx2")]
fn compress_inside(states: &mut States, first: usize, runs: &[&[Block]]) {
    let Some(last) = runs.last() else { return };
    // The lanes without a run repeat the last one, for nothing.
    let lanes: [&[Block]; LANES] = std::array::from_fn(|lane| *runs.get(lane).unwrap_or(last));
    let mut state = [_mm256_setzero_si256(); 8];
    for (vector, words) in state.iter_mut().zip(&states.0) {
        let mut given = [0; LANES];
        given[..runs.len()].copy_from_slice(&words[first..first + runs.len()]);
        *vector = load_state(&given);
    }
    for block in 0..last.len() {
        let mut words = [_mm256_setzero_si256(); 16];
        for (half, words) in words.as_chunks_mut().0.iter_mut().enumerate() {
            let mut rows = [_mm256_setzero_si256(); LANES];
            for (row, lane) in rows.iter_mut().zip(lanes) {
                *row = load_half(&lane[block].as_chunks().0[half]);
            }
            *words = transpose(rows);
        }
        let old = state;
        for k in &K[..3] {
            sixteen!(state, words, k, schedule);
        }
        sixteen!(state, words, &K[3]);
        for (new, old) in state.iter_mut().zip(old) {
            *new = add(*new, old);
        }
    }
    for (words, vector) in states.0.iter_mut().zip(state) {
        let mut new = [0; LANES];
        store_state(&mut new, vector);
        words[first..first + runs.len()].copy_from_slice(&new[..runs.len()]);
    }
}

/// The sums of the elements.
#[target_feature(enable = "avx2")]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(a, b)
}

/// One word in all elements.
#[target_feature(enable = "avx2")]
fn splat(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

/// The bits of `b` where `a` has them, else those of `c`.
#[target_feature(enable = "avx2")]
fn choose(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_xor_si256(c, _mm256_and_si256(a, _mm256_xor_si256(b, c)))
}

/// The majority of three.
#[target_feature(enable = "avx2")]
fn majority(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_and_si256(a, b), _mm256_and_si256(c, _mm256_or_si256(a, b)))
}

/// The function of three rotations.
#[target_feature(enable = "avx2")]
fn rotations<const A: i32, const B: i32, const C: i32>(x: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_xor_si256(rotated::<A>(x), rotated::<B>(x)), rotated::<C>(x))
}

/// The function of two rotations and a shift.
#[target_feature(enable = "avx2")]
fn shifted<const A: i32, const B: i32, const SHIFT: i32>(x: __m256i) -> __m256i {
    _mm256_xor_si256(_mm256_xor_si256(rotated::<A>(x), rotated::<B>(x)), _mm256_srli_epi32::<SHIFT>(x))
}

/// A rotation to the right.
#[target_feature(enable = "avx2")]
fn rotated<const BITS: i32>(x: __m256i) -> __m256i {
    // A shift by an immediate number would need that of the rest as a constant of its own; the compiler makes one.
    let left = _mm256_sll_epi32(x, _mm_cvtsi32_si128(32 - BITS));
    _mm256_or_si256(left, _mm256_srli_epi32::<BITS>(x))
}

/// From half a block of each lane to message word `i` of all lanes at `i`.
#[target_feature(enable = "avx2")]
fn transpose(mut rows: [__m256i; 8]) -> [__m256i; 8] {
    let mut t = rows;
    for i in [0, 2, 4, 6] {
        t[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
        t[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for i in [0, 4] {
        rows[i] = _mm256_unpacklo_epi64(t[i], t[i + 2]);
        rows[i + 1] = _mm256_unpackhi_epi64(t[i], t[i + 2]);
        rows[i + 2] = _mm256_unpacklo_epi64(t[i + 1], t[i + 3]);
        rows[i + 3] = _mm256_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    for i in 0..4 {
        // A native 64-bit word has its two message words in the wrong order.
        t[i ^ 1] = _mm256_permute2x128_si256::<0x20>(rows[i], rows[i + 4]);
        t[4 + (i ^ 1)] = _mm256_permute2x128_si256::<0x31>(rows[i], rows[i + 4]);
    }
    t
}

/// Loads half a block.
#[target_feature(enable = "avx2")]
fn load_half(half: &[u64; 4]) -> __m256i {
    // SAFETY: four words are 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(half.as_ptr().cast()) }
}

/// Loads one state word of all lanes.
#[target_feature(enable = "avx2")]
fn load_state(words: &[u32; LANES]) -> __m256i {
    // SAFETY: the array is 32 readable bytes; the load needs no alignment.
    unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
}

/// Stores one state word of all lanes.
#[target_feature(enable = "avx2")]
fn store_state(words: &mut [u32; LANES], vector: __m256i) {
    // SAFETY: the array is 32 writable bytes; the store needs no alignment.
    unsafe { _mm256_storeu_si256(words.as_mut_ptr().cast(), vector) }
}
