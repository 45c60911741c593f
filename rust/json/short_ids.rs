//! Ids as they nearly always are: up to seven digits each, no sign, `,` or `, `.
//!
//! The whole text is checked first, by what may follow what. Then the places of the commas in 64 bytes are found at once,
//! and the eight bytes before each comma are gathered. Only then are they made numbers, many at once: which of the eight
//! belong to the number they tell themselves. So nothing waits for the length of a number before, and no branch depends
//! on the number of digits. The loops over bytes and words are such that the compiler makes vector instructions of them.

use std::slice::IterMut;

use super::array::measure;
use super::swar;
#[cfg(target_arch = "x86_64")]
use super::x86::{self, Avx2};

/// The bytes before a comma that hold its number and at least one byte before that.
const WORD: usize = 8;

/// A block of 64 bytes with those before it where its first number may begin.
type Window = [u8; WORD + 64];

/// Words that are gathered without asking whether there are as many: asking is slow where the answer varies.
const GROUP: usize = 6;

/// Words that become numbers at once.
const LANES: usize = 8;

/// Words that wait until they become numbers: by then they have long been written, which makes reading them fast.
const WAITING: usize = 512;

/// The words that may wait when those of a block are added.
const FULL: usize = WAITING - 64 - GROUP;

/// Reads the array whose `[` is at `open`; gives it and where its `]` is.
///
/// None where anything is unusual.
pub(crate) fn read(line: &[u8], open: usize) -> Option<(Vec<i32>, usize)> {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Avx2::detect() {
        return x86::read_ids(avx2, line, open);
    }
    read_portably(line, open)
}

/// Does what [`read`] does, on any machine.
fn read_portably(line: &[u8], open: usize) -> Option<(Vec<i32>, usize)> {
    read_with(line, open, swar::commas, |words| {
        let numbers = words.map(swar::last_number);
        (numbers.map(|(number, _)| number as i32), numbers.iter().all(|(_, short)| *short))
    })
}

/// Does what [`read`] does, compiled for the instructions of the caller.
///
/// `commas` does what [`swar::commas`] does and `numbers` what [`swar::last_number`] does, for many words.
#[inline(always)]
pub(super) fn read_with(
    line: &[u8],
    open: usize,
    commas: impl Fn(&[u8; 64]) -> u64,
    numbers: impl Fn([u64; LANES]) -> ([i32; LANES], bool),
) -> Option<(Vec<i32>, usize)> {
    let body = open + 1;
    let (close, count) = measure(line, body)?;
    if count == 0 {
        return Some((Vec::new(), close));
    }
    if !is_usual(&line[body..close]) {
        return None;
    }
    // The last numbers may come with others behind them.
    let mut out = vec![0; count.next_multiple_of(LANES)];
    let mut slots = out.as_chunks_mut().0.iter_mut();
    let mut words = [0; WAITING];
    let mut waiting = 0;
    let mut short = true;
    let mut text = &line[body.checked_sub(WORD)?..close];
    while let Some(window) = text.first_chunk::<{ WORD + 64 }>() {
        waiting += gather(window, commas(window.last_chunk()?), &mut words[waiting..])?;
        if waiting > FULL {
            let whole = waiting - waiting % LANES;
            short &= convert(&words[..whole], &mut slots, &numbers);
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
    short &= convert(&words[..waiting.next_multiple_of(LANES)], &mut slots, &numbers);
    out.truncate(count);
    short.then_some((out, close))
}

/// Gathers the word before each comma; gives how many there are.
///
/// Behind them it writes others: those before the block's end.
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
#[inline(always)]
fn convert(
    words: &[u64],
    slots: &mut IterMut<[i32; LANES]>,
    numbers: impl Fn([u64; LANES]) -> ([i32; LANES], bool),
) -> bool {
    let mut all_short = true;
    for (words, slot) in words.as_chunks().0.iter().zip(slots) {
        let short;
        (*slot, short) = numbers(*words);
        all_short &= short;
    }
    all_short
}

/// Whether the text is only plain numbers, without sign or leading zeros, with
/// commas between and at most one space before each.
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
/// So the others are digits if they are above a comma at all, and signed
/// comparing does for that and takes one instruction less.
#[inline(always)]
fn may_follow(before: u8, last: u8, byte: u8) -> bool {
    let above_comma = |b: u8| b.cast_signed() > b','.cast_signed();
    let digit = (byte.wrapping_sub(b'0') < 10) & !((last == b'0') & !above_comma(before));
    let comma = (byte == b',') & above_comma(last);
    let space = (byte == b' ') & (last == b',');
    digit | comma | space
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What both ways read where the text stands in an array.
    fn ids(text: &str) -> Option<Vec<i32>> {
        let line = format!("{{\"prompt_token_ids\":[{text}]}}");
        let open = line.find('[').unwrap();
        let found = read(line.as_bytes(), open);
        assert_eq!(found, read_portably(line.as_bytes(), open), "{text}");
        let (ids, close) = found?;
        assert_eq!(close, line.len() - 2);
        Some(ids)
    }

    /// What the standard library reads.
    fn wanted(text: &str) -> Vec<i32> {
        text.split(',').map(|number| number.trim().parse().unwrap()).collect()
    }

    #[test]
    fn reads_every_length_in_every_place() {
        for place in 0..140 {
            for length in 1..=9 {
                for separator in [",", ", "] {
                    let before = ["12,", ""][place % 2].to_owned() + &"3,".repeat(place / 2);
                    let text = before + &"123456789"[..length] + separator + "4";
                    assert_eq!(ids(&text), (length < WORD).then(|| wanted(&text)), "{text}");
                }
            }
        }
    }

    #[test]
    fn leaves_what_is_unusual_in_any_place() {
        for odd in ["", " ", "-1", "01", "00", "1 ", " 1 ", "  1", "1.0", "1e3", "1 2", "x", "12345678", "\t1", "1\0"] {
            for before in (0..140).chain([600, 700]) {
                let text = ["3"].repeat(before).join(",") + if before > 0 { "," } else { "" } + odd;
                if !text.is_empty() && text != " " {
                    assert_eq!(ids(&text), None, "{odd:?} after {before}");
                    assert_eq!(ids(&format!("{text},3")), None, "{odd:?} after {before}, before one");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn reads_as_the_standard_library_does(
            numbers in proptest::collection::vec((any::<u32>(), 9_u32..32, any::<bool>()), 1..1_500),
            spaces in 0..3,
        ) {
            let mut text = String::new();
            for (number, shift, flag) in numbers {
                let space = spaces == 1 || spaces == 2 && flag;
                text += if text.is_empty() { "" } else if space { ", " } else { "," };
                text += &(number >> shift).to_string();
            }
            prop_assert_eq!(ids(&text), Some(wanted(&text)));
        }

        #[test]
        fn never_reads_something_else(text in "([0-9]{1,9}(,|, |,|,| |,,|x))*[0-9]{1,3}") {
            if let Some(found) = ids(&text) {
                prop_assert_eq!(found, wanted(&text));
            }
        }
    }
}
