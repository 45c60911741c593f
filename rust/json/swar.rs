//! Work on eight text bytes at once, held in one `u64` (first byte lowest).

/// The byte `b` in all eight places.
const fn splat(b: u8) -> u64 {
    u64::from_le_bytes([b; 8])
}

/// Keeps the last `n` of eight bytes: `LAST[n]`.
pub(crate) const LAST: [u64; 9] = {
    let mut table = [0; 9];
    let mut n = 1;
    while n <= 8 {
        table[n] = u64::MAX << (64 - 8 * n);
        n += 1;
    }
    table
};

/// The lower four bits of each byte: the value of a digit, zero for a space.
pub(crate) const LOW_HALVES: u64 = splat(0x0f);

/// The number that eight digits (0..=9 each, the first one lowest) spell.
pub(crate) fn number(digits: u64) -> u64 {
    // Each step adds up neighbours: to two digits, to four, to eight.
    let twos = (digits.wrapping_mul(1 + (10 << 8)) >> 8) & 0x00ff_00ff_00ff_00ff;
    let fours = (twos.wrapping_mul(1 + (100 << 16)) >> 16) & 0x0000_ffff_0000_ffff;
    fours.wrapping_mul(1 + (10_000 << 32)) >> 32
}

/// The decimal text of a number below 10**8, and how many bytes of it count.
#[inline]
pub(crate) fn decimal(number: u32) -> ([u8; 8], usize) {
    debug_assert!(number < 100_000_000);
    // The reverse of [`number`]: each step splits off the lower digits, with a
    // multiplication that is exact for the range in place of a division.
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let upper = ((fours * 5_243) >> 19) & 0x0000_007f_0000_007f;
    let twos = upper | (fours - upper * 100) << 16;
    let upper = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    let digits = upper | (twos - upper * 10) << 8;
    // The last digit stays even if it is zero.
    let zeros = (digits | 1 << 63).trailing_zeros() / 8;
    let text = (digits | splat(b'0')) >> (8 * zeros);
    (text.to_le_bytes(), 8 - zeros as usize)
}

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
    fn reads_eight_digits() {
        for n in [0_u64, 1, 9, 10, 12_345_678, 99_999_999, 90_000_001] {
            let text = format!("{n:08}");
            let word = u64::from_le_bytes(text.as_bytes().try_into().unwrap());
            assert_eq!(number(word & LOW_HALVES), n);
        }
    }

    #[test]
    fn writes_up_to_eight_digits() {
        let some = (0..20_000).chain((0..10_000).map(|n| n * 9_999 + 9_999));
        for n in some.chain([99_999_999, 10_000_000, 9_999_999]) {
            let (text, length) = decimal(n);
            assert_eq!(&text[..length], n.to_string().as_bytes());
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
