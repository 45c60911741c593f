//! Integers as JSON text, many at once.

use itoa::Integer;

use super::text::end_array;

/// An integer of a type that can be written: any of up to 64 bits, signed or not.
pub trait Int: Integer + Copy + Default {
    /// The integer, or a big one for one that is negative.
    fn word(self) -> u64;
}

macro_rules! impl_int {
    ($($signed:ty, $unsigned:ty;)*) => {
        $(
            impl Int for $signed {
                fn word(self) -> u64 {
                    i64::from(self).cast_unsigned()
                }
            }

            impl Int for $unsigned {
                fn word(self) -> u64 {
                    u64::from(self)
                }
            }
        )*
    };
}

impl_int! { i8, u8; i16, u16; i32, u32; i64, u64; }

/// Integers that become text at once.
///
/// Measured on a Zen 5 server core with `cargo bench --no-default-features --bench json -- write`, in ns an integer: 8
/// take 1.06, 16 take 0.94, 32 take 1.03, 64 take 1.12.
pub(super) const BLOCK: usize = 16;

/// The bytes that are stored for each integer of a block: at most so many it has, with its comma.
const WORD: usize = 8;

/// Integers of a block are below this: a power of two with up to seven digits, so that one test does for all of them.
pub(super) const LIMIT: u64 = 1 << 23;

/// Appends the integers as a JSON array, by the instructions of the caller.
///
/// `decimals` gives the texts of four numbers below [`LIMIT`], each with a comma behind it and its first byte lowest,
/// and their lengths.
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
pub(super) fn push<T: Int>(out: &mut Vec<u8>, values: &[T], decimals: impl Fn([u64; 4]) -> ([u64; 4], [u64; 4])) {
    out.push(b'[');
    let start = out.len();
    let (blocks, rest) = values.as_chunks();
    for block in blocks {
        push_block(out, block, &decimals);
    }
    if !rest.is_empty() {
        let mut block = [T::default(); BLOCK];
        block[..rest.len()].copy_from_slice(rest);
        push_block(out, &block, &decimals);
        // Each zero behind the rest has become two bytes.
        out.truncate(out.len() - 2 * (BLOCK - rest.len()));
    }
    end_array(out, start);
}

/// Appends the integers, each with a comma behind it.
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
fn push_block<T: Int>(out: &mut Vec<u8>, values: &[T; BLOCK], decimals: impl Fn([u64; 4]) -> ([u64; 4], [u64; 4])) {
    if values.iter().fold(0, |all, value| all | value.word()) >= LIMIT {
        return push_any(out, values);
    }
    let (fours, _) = values.as_chunks::<4>();
    let texts: [_; BLOCK / 4] = std::array::from_fn(|i| decimals(fours[i].map(Int::word)));
    // Always eight bytes are stored and some of them overwritten: their number is known when compiling. On the stack
    // that needs no room made.
    let mut block = [0; BLOCK * WORD];
    let mut at = 0;
    for (texts, lengths) in texts {
        for (text, length) in texts.into_iter().zip(lengths) {
            block[at..at + WORD].copy_from_slice(&text.to_le_bytes());
            #[expect(clippy::expect_used, reason = "a text's length is at most a word's")]
            let length = usize::try_from(length).expect("at most a word");
            at += length;
        }
    }
    out.extend_from_slice(&block[..at]);
}

/// Appends integers of any size, each with a comma behind it.
#[cold]
fn push_any(out: &mut Vec<u8>, values: &[impl Int]) {
    for &value in values {
        out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
        out.push(b',');
    }
}
