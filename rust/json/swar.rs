//! Work on eight text bytes at once, held in one `u64` (first byte lowest).

/// The byte `b` in all eight places.
const fn splat(b: u8) -> u64 {
    u64::from_le_bytes([b; 8])
}

/// A bit, the top one of its byte, for each byte that is not a digit.
#[inline]
pub(crate) fn no_digits(word: u64) -> u64 {
    let values = word ^ splat(b'0');
    (((values & splat(0x7f)) + splat(0x80 - 10)) | values) & splat(0x80)
}

/// A bit, the top one of its byte, for each byte that ends what a string may hold unescaped: a quote, a backslash, a
/// control character. Only the lowest bit is sure; zero is.
#[inline]
pub(crate) fn string_ends(word: u64) -> u64 {
    // The top bit of a byte appears where it is below what is taken away; what borrows from the next is such a byte.
    let below = |word: u64, limit: u8| word.wrapping_sub(splat(limit)) & !word;
    (below(word, b' ') | below(word ^ splat(b'"'), 1) | below(word ^ splat(b'\\'), 1)) & splat(0x80)
}

/// The number that the last digits of the word spell, and whether another byte is before them.
///
/// Of eight digits the number is of no use, for there may be more before the word.
#[inline]
pub(crate) fn last_number(word: u64) -> (i32, bool) {
    let others = no_digits(word);
    // As many as there are bits of digits, for these flags are the top bits of bytes.
    let bits = others.leading_zeros();
    let digits = word & splat(0x0f) & !u64::MAX.wrapping_shr(bits);
    (number(digits), others != 0)
}

/// The number that eight digits (0..=9 each, the first one lowest) spell.
fn number(digits: u64) -> i32 {
    // Each step adds up neighbours: to two digits, to four, to eight.
    let twos = (digits.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    (fours.wrapping_mul(1 + (10_000 << 32)) >> 32) as i32
}

/// The decimal text of a number below 10**7 with a comma behind it, the first byte lowest, and how many bytes that is.
#[inline]
pub(crate) fn decimal(number: u64) -> (u64, u64) {
    debug_assert!(number < 10_000_000);
    // The reverse of [`number`]: each step splits off the lower digits, with a multiplication that is exact for the
    // range in place of a division.
    let fours = (number / 10_000) | (number % 10_000) << 32;
    let upper = ((fours * 5_243) >> 19) & 0x0000_007f_0000_007f;
    let twos = upper | (fours - upper * 100) << 16;
    let upper = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = (upper | (twos - upper * 10) << 8) >> 8;
    // The last digit stays even if it is zero.
    let zeros = (digits | 1 << 48).trailing_zeros() / 8;
    ((digits | ZEROS_COMMA) >> (8 * zeros), u64::from(8 - zeros))
}

/// Seven digits and a comma.
pub(crate) const ZEROS_COMMA: u64 = u64::from_le_bytes(*b"0000000,");

/// One bit for each comma, the first byte lowest.
#[inline]
pub(crate) fn commas(block: &[u8; 64]) -> u64 {
    let (rows, _) = block.as_chunks::<8>();
    let mut others = 0;
    for (i, row) in rows.iter().enumerate() {
        let word = u64::from_le_bytes(*row) ^ splat(b',');
        // The top bit of a byte stays clear only where the byte is zero now.
        let top = ((word & splat(0x7f)) + splat(0x7f)) | word;
        others |= (top >> (7 - i)) & (splat(1) << i);
    }
    // Byte c has bit r clear if there is a comma in row r, column c.
    transpose(!others)
}

/// Makes rows of the columns of eight times eight bits.
fn transpose(bits: u64) -> u64 {
    let swap = |bits: u64, mask: u64, shift: u32| {
        let changed = (bits ^ (bits >> shift)) & mask;
        bits ^ changed ^ (changed << shift)
    };
    // Single bits, then squares of two times two, then of four times four.
    let bits = swap(bits, 0x00aa_00aa_00aa_00aa, 7);
    let bits = swap(bits, 0x0000_cccc_0000_cccc, 14);
    swap(bits, 0x0000_0000_f0f0_f0f0, 28)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_ends_a_string() {
        for place in 0..8 {
            for byte in 0..=u8::MAX {
                for behind in [b'"', 0, b'a', 0xff] {
                    let mut word = [b'!'; 8];
                    word[place..].fill(behind);
                    word[place] = byte;
                    let ends = |b: u8| b < b' ' || b == b'"' || b == b'\\';
                    let want = word.iter().position(|&b| ends(b));
                    let found = string_ends(u64::from_le_bytes(word));
                    assert_eq!((found != 0).then(|| found.trailing_zeros() as usize / 8), want, "{word:?}");
                }
            }
        }
    }

    #[test]
    fn reads_the_digits_at_the_end() {
        for before in 0..=u8::MAX {
            for n in [0, 1, 9, 10, 305, 4_000, 65_536, 999_999, 1_234_567, 9_000_009] {
                let text = [[before; 8].as_slice(), n.to_string().as_bytes()].concat();
                let word = u64::from_le_bytes(*text.last_chunk().unwrap());
                let (number, short) = last_number(word);
                assert_eq!(short, !before.is_ascii_digit());
                assert!(number == n || !short, "{n} after {before}");
            }
        }
    }

    #[test]
    fn writes_up_to_seven_digits() {
        for n in (0..20_000).chain((0..10_000_000).step_by(997)).chain([9_999_999, 1_000_000, 999_999]) {
            let (text, length) = decimal(n);
            assert_eq!(text.to_le_bytes()[..usize::try_from(length).unwrap()], *format!("{n},").as_bytes());
        }
    }

    #[test]
    fn finds_each_comma() {
        for place in 0..64 {
            for byte in (0..=u8::MAX).filter(|&byte| byte != b',') {
                let mut block = [byte; 64];
                block[place] = b',';
                assert_eq!(commas(&block), 1 << place, "{byte} around {place}");
                let mut block = [b','; 64];
                block[place] = byte;
                assert_eq!(commas(&block), !(1 << place), "{byte} at {place}");
            }
        }
    }
}
