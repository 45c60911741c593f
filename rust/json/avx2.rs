//! AVX2 for ids as text.
//!
//! The loops are those of [`short_ids`] and [`int_text`], compiled anew for these instructions. Only what the compiler
//! makes no good instructions of is written out here, each time as a function that [`swar`] has too.
#![expect(unsafe_code, reason = "calls of functions that need detected instructions, and vectors made arrays")]

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::{
    __m256i, _mm_set_epi64x, _mm256_add_epi16, _mm256_add_epi32, _mm256_add_epi64, _mm256_and_si256,
    _mm256_andnot_si256, _mm256_broadcastsi128_si256, _mm256_cmpeq_epi8, _mm256_cmpeq_epi64, _mm256_cmpgt_epi8,
    _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_movemask_epi8, _mm256_mul_epu32, _mm256_mulhi_epu16,
    _mm256_mullo_epi16, _mm256_mullo_epi32, _mm256_or_si256, _mm256_packus_epi32, _mm256_permute4x64_epi64,
    _mm256_sad_epu8, _mm256_set_epi64x, _mm256_set1_epi8, _mm256_set1_epi16, _mm256_set1_epi32, _mm256_set1_epi64x,
    _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_srli_epi16, _mm256_srli_epi64, _mm256_srlv_epi64,
    _mm256_testz_si256, _mm256_xor_si256,
};

use super::halt::Reading;
use super::int_text::{self, Int};
use super::{short_ids, swar};

/// The instructions found on this machine. The field is private, so a value is the proof that they are there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Asks the processor; `None` if one of them is missing.
    pub(super) fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        all.then_some(Self(()))
    }
}

/// Reads the array of short ids whose `[` is at `open`, as [`short_ids::read`] does.
pub(super) fn read_short_ids(_: Avx2, line: &[u8], open: usize) -> Reading<(Vec<i32>, usize)> {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn read(line: &[u8], open: usize) -> Reading<(Vec<i32>, usize)> {
        short_ids::read(line, open, |block| commas(block), |words| numbers(words))
    }
    // SAFETY: an `Avx2` exists only where the instructions were detected.
    unsafe { read(line, open) }
}

/// Appends the integers as a JSON array, as [`int_text::push`] does.
pub(super) fn push_ints<T: Int>(_: Avx2, out: &mut Vec<u8>, values: &[T]) {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn push<T: Int>(out: &mut Vec<u8>, values: &[T]) {
        int_text::push(out, values, |numbers| decimals(numbers));
    }
    // SAFETY: an `Avx2` exists only where the instructions were detected.
    unsafe { push(out, values) }
}

/// Does what [`swar::commas`] does.
#[inline]
#[target_feature(enable = "avx2")]
fn commas(block: &[u8; 64]) -> u64 {
    let (words, _) = block.as_chunks();
    let [a, b, c, d, e, f, g, h] = std::array::from_fn(|i| u64::from_le_bytes(words[i]));
    let half = |words| {
        let equal = _mm256_cmpeq_epi8(vector(words), _mm256_set1_epi8(b','.cast_signed()));
        u64::from(_mm256_movemask_epi8(equal).cast_unsigned())
    };
    half([a, b, c, d]) | half([e, f, g, h]) << 32
}

/// Does what [`swar::last_number`] does, for eight words of ASCII text; the flag is whether it is set for all.
#[inline]
#[target_feature(enable = "avx2")]
fn numbers([a, b, c, d, e, f, g, h]: [u64; 8]) -> ([i32; 8], bool) {
    let (upper, upper_long) = fours([a, b, c, d]);
    let (lower, lower_long) = fours([e, f, g, h]);
    // Packing takes the halves of both in turn.
    let fours = _mm256_permute4x64_epi64(_mm256_packus_epi32(upper, lower), 0b_11_01_10_00);
    let numbers = _mm256_madd_epi16(fours, _mm256_set1_epi32(1 | 10_000 << 16));
    let long = _mm256_or_si256(upper_long, lower_long);
    // SAFETY: both types are 32 bytes, and any bytes are a value of the array.
    let numbers = unsafe { std::mem::transmute::<__m256i, [i32; 8]>(numbers) };
    (numbers, _mm256_testz_si256(long, long) != 0)
}

/// The last four digits of each word as a number, then those before them; and which words are nothing but digits.
#[inline]
#[target_feature(enable = "avx2")]
fn fours(words: [u64; 4]) -> (__m256i, __m256i) {
    let values =
        _mm256_xor_si256(reorder(vector(words), [7, 6, 5, 4, 3, 2, 1, 0]), _mm256_set1_epi8(b'0'.cast_signed()));
    let others = _mm256_cmpgt_epi8(values, _mm256_set1_epi8(9));
    let digits = _mm256_and_si256(values, below_lowest(others));
    let twos = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(1 | 10 << 8));
    let fours = _mm256_madd_epi16(twos, _mm256_set1_epi32(1 | 100 << 16));
    (fours, _mm256_cmpeq_epi64(others, _mm256_setzero_si256()))
}

/// Does what [`swar::decimal`] does, for four numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn decimals(numbers: [u64; 4]) -> ([u64; 4], [u64; 4]) {
    // Each step puts the quotient, which multiplying finds exactly in this range, above the remainder.
    let numbers = vector(numbers);
    let upper = _mm256_srli_epi64(_mm256_mul_epu32(numbers, _mm256_set1_epi64x(3_518_437_209)), 45);
    let fours = _mm256_add_epi64(numbers, _mm256_mul_epu32(upper, _mm256_set1_epi64x((1 << 32) - 10_000)));
    let upper = _mm256_srli_epi16(_mm256_mulhi_epu16(fours, _mm256_set1_epi16(5_243)), 3);
    let twos = _mm256_add_epi32(fours, _mm256_mullo_epi32(upper, _mm256_set1_epi32((1 << 16) - 100)));
    let upper = _mm256_mulhi_epu16(twos, _mm256_set1_epi16(6_554));
    let ones = _mm256_add_epi16(twos, _mm256_mullo_epi16(upper, _mm256_set1_epi16((1 << 8) - 10)));
    // The first of seven digits becomes the lowest byte. The last one counts as more than zero even if it is zero.
    let digits = reorder(ones, [6, 5, 4, 3, 2, 1, 0, 7]);
    let zeros = below_lowest(_mm256_cmpgt_epi8(digits, _mm256_set1_epi64x(-1 << 48)));
    let sum = |bytes| _mm256_sad_epu8(bytes, _mm256_setzero_si256());
    let bits = sum(_mm256_and_si256(zeros, _mm256_set1_epi8(8)));
    let lengths = sum(_mm256_andnot_si256(zeros, _mm256_set1_epi8(1)));
    let padded = _mm256_or_si256(digits, _mm256_set1_epi64x(swar::ZEROS_COMMA.cast_signed()));
    let texts = _mm256_srlv_epi64(padded, bits);
    (words(texts), words(lengths))
}

/// All bytes of each word below its lowest set byte; every byte of `flags` is all ones or zero.
#[inline]
#[target_feature(enable = "avx2")]
fn below_lowest(flags: __m256i) -> __m256i {
    _mm256_andnot_si256(flags, _mm256_add_epi64(flags, _mm256_set1_epi64x(-1)))
}

/// Orders the bytes of each word anew: `from` has the old place of each.
#[inline]
#[target_feature(enable = "avx2")]
fn reorder(words: __m256i, from: [u8; 8]) -> __m256i {
    let lower = i64::from_le_bytes(from);
    let upper = i64::from_le_bytes(from.map(|place| place + 8));
    _mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(_mm_set_epi64x(upper, lower)))
}

/// The vector as words, the first one lowest.
#[inline]
#[target_feature(enable = "avx2")]
fn words(vector: __m256i) -> [u64; 4] {
    // SAFETY: both types are 32 bytes, and any bytes are a value of the array.
    unsafe { std::mem::transmute(vector) }
}

/// The words as a vector, the first one lowest.
#[inline]
#[target_feature(enable = "avx2")]
fn vector(words: [u64; 4]) -> __m256i {
    let [a, b, c, d] = words.map(u64::cast_signed);
    _mm256_set_epi64x(d, c, b, a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn finds_the_same_commas(seed in proptest::collection::vec(any::<u8>(), 64)) {
            let block: [u8; 64] = std::array::from_fn(|i| if seed[i] < 99 { b',' } else { seed[i] });
            if Avx2::detect().is_some() {
                // SAFETY: the instructions were detected.
                prop_assert_eq!(unsafe { commas(&block) }, swar::commas(&block));
            }
        }

        #[test]
        fn reads_the_same_numbers(texts: [u64; 8], lengths in proptest::array::uniform8(0..=8_usize)) {
            let words = std::array::from_fn(|i| {
                let mut word = texts[i].to_le_bytes().map(|byte| byte & 0x7f);
                for byte in &mut word[8 - lengths[i]..] {
                    *byte = b'0' + *byte % 10;
                }
                u64::from_le_bytes(word)
            });
            if Avx2::detect().is_some() {
                let want = words.map(swar::last_number);
                // SAFETY: the instructions were detected.
                let (found, short) = unsafe { numbers(words) };
                for (found, (want, short)) in found.into_iter().zip(want) {
                    prop_assert!(found == want || !short);
                }
                prop_assert_eq!(short, want.iter().all(|(_, short)| *short));
            }
        }
    }

    #[test]
    fn writes_the_same_decimals() {
        if Avx2::detect().is_some() {
            for n in (0..int_text::LIMIT - 11).step_by(7) {
                let four = [n, n + 3, n + 5, n + 11];
                // SAFETY: the instructions were detected.
                let (texts, lengths) = unsafe { decimals(four) };
                let want = four.map(swar::decimal);
                assert_eq!((texts, lengths), (want.map(|(text, _)| text), want.map(|(_, length)| length)));
            }
        }
    }
}
