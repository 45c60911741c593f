//! The AVX-512 kernel: sixteen lanes, one in each 32-bit element of a vector.
#![expect(unsafe_code, reason = "calls of functions that need detected instructions, and vector loads and stores")]

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_mask_shuffle_epi32, _mm512_mask_test_epi32_mask,
    _mm512_or_si512, _mm512_ror_epi32, _mm512_set1_epi32, _mm512_setzero_si512, _mm512_shuffle_i32x4,
    _mm512_srli_epi32, _mm512_storeu_si512, _mm512_ternarylogic_epi32, _mm512_unpackhi_epi32, _mm512_unpackhi_epi64,
    _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};

use super::rounds::sixteen;
use crate::sha256::constants::K;
use crate::sha256::state::{Block, LANES, States};

/// The elements with the high halves of native 64-bit words.
const HIGH: u16 = 0xAAAA;

/// Truth table of `a ^ b ^ c`.
const XOR: i32 = 0x96;

/// The instructions found on this machine. The field is private, so a value is the proof that they are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Avx512(());

impl Avx512 {
    /// Asks the processor; `None` if it has them not.
    pub fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then_some(Self(()))
    }
}

/// Calls `f`; what is inlined of it is compiled for AVX-512.
#[inline]
pub fn inside<T>(_: Avx512, f: impl FnOnce() -> T) -> T {
    #[target_feature(enable = "avx512f")]
    fn wide<T>(f: impl FnOnce() -> T) -> T {
        f()
    }
    // SAFETY: an `Avx512` exists only where the instructions were detected.
    unsafe { wide(f) }
}

/// Compresses the blocks of each run, all of one length. The lanes without a run repeat the last one and come to a
/// state that means nothing.
#[inline]
pub fn compress(_: Avx512, states: &mut States, runs: &[&[Block]]) {
    // SAFETY: an `Avx512` exists only where the instructions were detected.
    unsafe { compress_inside(states, runs) }
}

#[target_feature(enable = "avx512f")]
fn compress_inside(states: &mut States, runs: &[&[Block]]) {
    let Some(last) = runs.last() else { return };
    let mut state = [_mm512_setzero_si512(); 8];
    for (vector, words) in state.iter_mut().zip(&states.0) {
        *vector = load_state(words);
    }
    for block in 0..last.len() {
        let mut rows = [_mm512_setzero_si512(); LANES];
        for (lane, row) in rows.iter_mut().enumerate() {
            *row = load_block(&runs.get(lane).unwrap_or(last)[block]);
        }
        let old = state;
        rounds(&mut state, &rows);
        for (new, old) in state.iter_mut().zip(old) {
            *new = add(*new, old);
        }
    }
    for (words, vector) in states.0.iter_mut().zip(state) {
        store_state(words, vector);
    }
}

/// The 64 rounds of one block of each lane.
#[target_feature(enable = "avx512f")]
fn rounds(state: &mut [__m512i; 8], rows: &[__m512i; 16]) {
    let mut words;
    // The same sixteen rounds twice: behind `transpose_narrow` the compiler drops what only adds zeros.
    if narrow(rows) {
        words = transpose_narrow(rows);
        sixteen!(state, words, &K[0], schedule);
    } else {
        words = transpose(*rows);
        sixteen!(state, words, &K[0], schedule);
    }
    for k in &K[1..3] {
        sixteen!(state, words, k, schedule);
    }
    sixteen!(state, words, &K[3]);
}

/// The sums of the elements.
#[target_feature(enable = "avx512f")]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

/// One word in all elements.
#[target_feature(enable = "avx512f")]
fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

/// The bits of `b` where `a` has them, else those of `c`.
#[target_feature(enable = "avx512f")]
fn choose(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    logic::<0xCA>(a, b, c)
}

/// The majority of three.
#[target_feature(enable = "avx512f")]
fn majority(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    logic::<0xE8>(a, b, c)
}

/// A bitwise function of three, given by its truth table.
#[target_feature(enable = "avx512f")]
fn logic<const TABLE: i32>(a: __m512i, b: __m512i, c: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<TABLE>(a, b, c)
}

/// The function of three rotations.
#[target_feature(enable = "avx512f")]
fn rotations<const A: i32, const B: i32, const C: i32>(x: __m512i) -> __m512i {
    let (a, b) = (_mm512_ror_epi32::<A>(x), _mm512_ror_epi32::<B>(x));
    logic::<XOR>(a, b, _mm512_ror_epi32::<C>(x))
}

/// The function of two rotations and a shift.
#[target_feature(enable = "avx512f")]
fn shifted<const A: i32, const B: i32, const SHIFT: u32>(x: __m512i) -> __m512i {
    let (a, b) = (_mm512_ror_epi32::<A>(x), _mm512_ror_epi32::<B>(x));
    logic::<XOR>(a, b, _mm512_srli_epi32::<SHIFT>(x))
}

/// True if all words of all blocks are below 2^32, as token ids nearly always are.
#[target_feature(enable = "avx512f")]
fn narrow(rows: &[__m512i; 16]) -> bool {
    let mut any = rows[0];
    for &row in &rows[1..] {
        any = _mm512_or_si512(any, row);
    }
    _mm512_mask_test_epi32_mask(HIGH, any, any) == 0
}

/// From one block of each lane to message word `i` of all lanes at `i`.
#[target_feature(enable = "avx512f")]
fn transpose(mut rows: [__m512i; 16]) -> [__m512i; 16] {
    let mut t = rows;
    for i in [0, 2, 4, 6, 8, 10, 12, 14] {
        t[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        t[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for i in [0, 4, 8, 12] {
        rows[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
        rows[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
        rows[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
        rows[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
    }
    // Now element `i % 4` of four lanes is in every quarter `i / 4`.
    for i in 0..4 {
        // A native 64-bit word has its two message words in the wrong order.
        [t[i ^ 1], t[4 + (i ^ 1)], t[8 + (i ^ 1)], t[12 + (i ^ 1)]] =
            transpose_quarters([rows[i], rows[4 + i], rows[8 + i], rows[12 + i]]);
    }
    t
}

/// The same for words below 2^32, whose even message words are zero.
#[target_feature(enable = "avx512f")]
fn transpose_narrow(rows: &[__m512i; 16]) -> [__m512i; 16] {
    // The low halves of the words of two lanes in one row.
    let mut pairs = [_mm512_setzero_si512(); 8];
    for (pair, &[even, odd]) in pairs.iter_mut().zip(rows.as_chunks().0) {
        *pair = _mm512_mask_shuffle_epi32::<0xA0>(even, HIGH, odd);
    }
    let mut fours = pairs;
    for i in [0, 2, 4, 6] {
        fours[i] = _mm512_unpacklo_epi64(pairs[i], pairs[i + 1]);
        fours[i + 1] = _mm512_unpackhi_epi64(pairs[i], pairs[i + 1]);
    }
    // Now word `i % 2` of four lanes is in every quarter `i / 2`.
    let mut words = [_mm512_setzero_si512(); 16];
    for i in 0..2 {
        [words[2 * i + 1], words[2 * i + 5], words[2 * i + 9], words[2 * i + 13]] =
            transpose_quarters([fours[i], fours[2 + i], fours[4 + i], fours[6 + i]]);
    }
    words
}

/// From four rows to quarter `i` of all of them at `i`.
#[target_feature(enable = "avx512f")]
fn transpose_quarters([a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
    let (even_low, odd_low) = (_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xDD>(a, b));
    let (even_high, odd_high) = (_mm512_shuffle_i32x4::<0x88>(c, d), _mm512_shuffle_i32x4::<0xDD>(c, d));
    [
        _mm512_shuffle_i32x4::<0x88>(even_low, even_high),
        _mm512_shuffle_i32x4::<0x88>(odd_low, odd_high),
        _mm512_shuffle_i32x4::<0xDD>(even_low, even_high),
        _mm512_shuffle_i32x4::<0xDD>(odd_low, odd_high),
    ]
}

/// Loads a block.
#[target_feature(enable = "avx512f")]
fn load_block(block: &Block) -> __m512i {
    // SAFETY: a block is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(block.as_ptr().cast()) }
}

/// Loads one state word of all lanes.
#[target_feature(enable = "avx512f")]
fn load_state(words: &[u32; LANES]) -> __m512i {
    // SAFETY: the array is 64 readable bytes; the load needs no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// Stores one state word of all lanes.
#[target_feature(enable = "avx512f")]
fn store_state(words: &mut [u32; LANES], vector: __m512i) {
    // SAFETY: the array is 64 writable bytes; the store needs no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}
