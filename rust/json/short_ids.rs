//! Ids as they nearly always are: up to eight bytes each, no sign, `,` or `, `.
//!
//! The whole text is checked first, by what may follow what. Then the places of
//! the commas in 64 bytes are found at once, so that reading a number needn't
//! wait for the length of the one before, and no branch depends on the number
//! of digits. All loops over bytes are such that the compiler makes vector
//! instructions of them.

use std::slice::IterMut;

use super::array::measure;
use super::swar;

/// The most bytes of a number, with the space before it.
const MOST_BYTES: usize = 8;

/// A block of 64 bytes with those before it where its first number may begin.
type Window = [u8; MOST_BYTES + 64];

/// Reads the array whose `[` is at `open`; gives it and where its `]` is.
///
/// None where anything is unusual.
pub(crate) fn read(line: &[u8], open: usize) -> Option<(Vec<i32>, usize)> {
    let body = open + 1;
    let (close, count) = measure(line, body)?;
    if count > 0 && !is_usual(&line[body..close]) {
        return None;
    }

    let mut out = vec![0; count];
    let mut slots = out.iter_mut();
    // How many bytes before the block the next number begins.
    let mut begun = 0;
    for block in (body..=close).step_by(64) {
        let text = line.get(block.checked_sub(MOST_BYTES)?..)?;
        let length = close - block;
        if length >= 64 {
            begun = read_block(text.first_chunk()?, begun, &mut slots)?;
        } else if count > 0 {
            // The array's end counts as a last comma.
            let mut window = [0; _];
            window[..MOST_BYTES + length].copy_from_slice(&text[..MOST_BYTES + length]);
            window[MOST_BYTES + length] = b',';
            begun = read_block(&window, begun, &mut slots)?;
        }
    }
    Some((out, close))
}

/// Whether the text is only plain numbers, without sign or leading zeros, with
/// commas between and at most one space before each.
fn is_usual(text: &[u8]) -> bool {
    let (Some(&first), Some(end)) = (text.first(), text.last()) else {
        return false;
    };
    // The `[` is like a comma to what follows it.
    let mut fine = may_follow(b',', b',', first) & end.is_ascii_digit();
    if let Some(&second) = text.get(1) {
        fine &= may_follow(b',', first, second);
        for ((&before, &last), &byte) in text.iter().zip(&text[1..]).zip(&text[2..]) {
            fine &= may_follow(before, last, byte);
        }
    }
    fine
}

/// Whether `byte` may stand after the two others, which are checked themselves.
///
/// So the others are digits if they are above a comma at all, and signed
/// comparing does for that and takes one instruction less.
fn may_follow(before: u8, last: u8, byte: u8) -> bool {
    let above_comma = |b: u8| b.cast_signed() > b','.cast_signed();
    let digit = (byte.wrapping_sub(b'0') < 10) & !((last == b'0') & !above_comma(before));
    let comma = (byte == b',') & above_comma(last);
    let space = (byte == b' ') & (last == b',');
    digit | comma | space
}

/// Reads the numbers that end in the block; gives how many bytes before the
/// next block the next number begins.
#[inline]
fn read_block(window: &Window, begun: usize, slots: &mut IterMut<i32>) -> Option<usize> {
    let mut commas = swar::commas(window.last_chunk()?);
    // Both count from the start of the window.
    let mut start = MOST_BYTES.wrapping_sub(begun);
    while commas != 0 {
        let end = MOST_BYTES + commas.trailing_zeros() as usize;
        commas &= commas - 1;
        let keep = *swar::LAST.get(end.wrapping_sub(start))?;
        let word = u64::from_le_bytes(window[end - 8..end].try_into().ok()?);
        // A space becomes a zero in front.
        let digits = word & swar::LOW_HALVES & keep;
        *slots.next()? = swar::number(digits) as i32;
        start = end + 1;
    }
    Some(window.len().wrapping_sub(start))
}
