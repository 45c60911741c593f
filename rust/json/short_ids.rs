//! Ids as they nearly always are: up to seven digits each, no sign, `,` or `, `.
//!
//! The whole text is checked first, by what may follow what. Then the places of the commas in 64 bytes are found at
//! once, and the eight bytes before each comma are gathered. Only then are they made numbers, many at once: which of
//! the eight belong to the number they tell themselves. So nothing waits for the length of a number before, and no
//! branch depends on the number of digits. The loops over bytes and words are such that the compiler makes vector
//! instructions of them.

use super::array::measure;
use super::halt::{Halt, Reading, room};

/// The bytes before a comma that hold its number and at least one byte before that.
pub(super) const WORD: usize = 8;

/// A block of 64 bytes with those before it where its first number may begin.
type Window = [u8; WORD + 64];

// Measured on a Zen 5 server core with `cargo bench --no-default-features --bench json -- read`, in ns an id of even
// and of mixed lengths.

/// Words that are gathered without asking whether there are as many: asking is slow where the answer varies.
///
/// 2 to 6 make no difference beyond noise (1.34 to 1.41 and 1.19 to 1.23, with 512 words waiting); 8 take 1.69 and
/// 1.29.
const GROUP: usize = 6;

/// Words that become numbers at once.
pub(super) const LANES: usize = 8;

/// The room for words that wait until they become numbers: by then they have been written, which makes reading them
/// fast, and all are still near.
///
/// 80 take 1.40 and 1.02, 96 take 1.15 and 0.98, 128 take 1.22 and 1.07, 512 take 1.40 and 1.22.
const WAITING: usize = 96;

/// The words that may wait when those of a block are added.
const FULL: usize = WAITING - 64 - GROUP;

/// Reads the array whose `[` is at `open`, by the instructions of the caller; gives it and where its `]` is.
///
/// Odd where anything is unusual. `commas` gives one bit for each comma, the first byte lowest; `numbers` gives the
/// numbers that the last digits of words spell, and whether all are short: whether another byte stands before each.
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
pub(super) fn read(
    line: &[u8],
    open: usize,
    commas: impl Fn(&[u8; 64]) -> u64,
    numbers: impl Fn([u64; LANES]) -> ([i32; LANES], bool),
) -> Reading<(Vec<i32>, usize)> {
    let body = open + 1;
    let (close, count) = measure(line, body).ok_or(Halt::Odd)?;
    if count == 0 {
        return Ok((Vec::new(), close));
    }
    if !is_usual(&line[body..close]) {
        return Err(Halt::Odd);
    }
    // The last numbers may come with others behind them.
    let mut out = room(count.next_multiple_of(LANES))?;
    let start = body.checked_sub(WORD).ok_or(Halt::Odd)?;
    let short = fill(&mut out, &line[start..close], commas, numbers).ok_or(Halt::Odd)?;
    out.truncate(count);
    if short { Ok((out, close)) } else { Err(Halt::Odd) }
}

/// Reads the numbers of a text that begins a word before the first; gives whether all are short.
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
fn fill(
    out: &mut Vec<i32>,
    mut text: &[u8],
    commas: impl Fn(&[u8; 64]) -> u64,
    numbers: impl Fn([u64; LANES]) -> ([i32; LANES], bool),
) -> Option<bool> {
    let mut words = [0; WAITING];
    let mut waiting = 0;
    let mut short = true;
    while let Some(window) = text.first_chunk::<{ WORD + 64 }>() {
        waiting += gather(window, commas(window.last_chunk()?), &mut words[waiting..])?;
        if waiting > FULL {
            let whole = waiting - waiting % LANES;
            short &= convert(&words[..whole], out, &numbers);
            words.copy_within(whole..whole + LANES, 0);
            waiting -= whole;
        }
        text = &text[64..];
    }
    // The array's end counts as a last comma.
    let mut window = [0; WORD + 64];
    window[..text.len()].copy_from_slice(text);
    window[text.len()] = b',';
    waiting += gather(&window, commas(window.last_chunk()?), &mut words[waiting..])?;
    short &= convert(&words[..waiting.next_multiple_of(LANES)], out, &numbers);
    Some(short)
}

/// Gathers the word before each comma; gives how many there are.
///
/// Behind them it writes others: those before the block's end.
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
fn gather(window: &Window, mut commas: u64, words: &mut [u64]) -> Option<usize> {
    let count = commas.count_ones() as usize;
    let mut gathered = 0;
    while gathered < count {
        for word in words.get_mut(gathered..)?.first_chunk_mut::<GROUP>()? {
            let place = commas.trailing_zeros() as usize;
            commas &= commas.wrapping_sub(1);
            *word = u64::from_le_bytes(*window[place..].first_chunk()?);
        }
        gathered += GROUP;
    }
    Some(count)
}

/// Makes numbers of the words, groupwise; gives whether all are short enough for that.
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
fn convert(words: &[u64], out: &mut Vec<i32>, numbers: impl Fn([u64; LANES]) -> ([i32; LANES], bool)) -> bool {
    let mut all_short = true;
    for words in words.as_chunks().0 {
        let (numbers, short) = numbers(*words);
        out.extend_from_slice(&numbers);
        all_short &= short;
    }
    all_short
}

/// The place after the array whose `[` is at `open`, if it holds one or more plain numbers of any length.
pub(super) fn skip(text: &[u8], open: usize) -> Option<usize> {
    let body = open + 1;
    let close = body + memchr::memchr(b']', &text[body..])?;
    is_usual(&text[body..close]).then_some(close + 1)
}

/// Whether the text is only plain numbers, without sign or leading zeros, with commas between and at most one space
/// before each.
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
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
/// So the others are digits if they are above a comma at all, and signed comparing does for that and takes one
/// instruction less.
#[expect(clippy::needless_bitwise_bool, reason = "spares branches that are hard to foresee")]
#[expect(clippy::inline_always, reason = "to be compiled for the instructions of the caller")]
#[inline(always)]
fn may_follow(before: u8, last: u8, byte: u8) -> bool {
    let above_comma = |b: u8| b.cast_signed() > b','.cast_signed();
    let digit = (byte.wrapping_sub(b'0') < 10) & !((last == b'0') & !above_comma(before));
    let comma = (byte == b',') & above_comma(last);
    let space = (byte == b' ') & (last == b',');
    digit | comma | space
}
