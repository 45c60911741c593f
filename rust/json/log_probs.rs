//! Log-probs: JSON numbers, or the strings that stand for NaN and the infinities.

use super::array::{Item, trim};
use super::ids::split_integer;
use super::swar;

/// A float type for log-probs: `f64`, or `f32` rounded once, from the text.
pub trait LogProb: Copy + fast_float2::FastFloat + From<f32> {}

impl LogProb for f32 {}
impl LogProb for f64 {}

/// The longest number text that we read ourselves; the shortest text of any `f64` has 24 bytes at most.
const LONGEST: usize = 200;

/// The most digits of which any number fits in `u64`.
const MOST_DIGITS: usize = 19;

impl<F: LogProb> Item for F {
    fn read(line: &[u8], start: usize, end: usize) -> Option<Self> {
        let text = trim(&line[start..end]);
        match text {
            // Of what begins like this, the crate's grammar is JSON's.
            [b'-', whole, b'.', fraction, ..] | [whole, b'.', fraction, ..]
                if whole.is_ascii_digit() && fraction.is_ascii_digit() && text.len() <= LONGEST =>
            {
                return fast_float2::parse(text).ok();
            }
            b"\"NaN\"" | b"NaN" => return Some(f32::NAN.into()),
            b"\"Infinity\"" | b"Infinity" => return Some(f32::INFINITY.into()),
            b"\"-Infinity\"" | b"-Infinity" => return Some(f32::NEG_INFINITY.into()),
            _ if text.len() > LONGEST => return None,
            _ => {}
        }
        if let Some((_, digits)) = split_integer(text) {
            // The full reader makes an integer of it first, so that -0 has no sign, and treats more digits than an i64
            // holds in a way of its own.
            return match digits {
                [b'0'] => Some(0.0.into()),
                _ if digits.len() >= MOST_DIGITS => None,
                _ => fast_float2::parse(text).ok(),
            };
        }
        if is_fractional(text) { fast_float2::parse(text).ok() } else { None }
    }
}

/// Whether the text is a JSON number with a fraction, an exponent or both.
fn is_fractional(text: &[u8]) -> bool {
    let (whole, after_whole) = split_digits(text.strip_prefix(b"-").unwrap_or(text));
    let after_fraction = match after_whole {
        [b'.', fraction @ ..] => match split_digits(fraction) {
            ([], _) => return false,
            (_, rest) => rest,
        },
        rest => rest,
    };
    let ends = match after_fraction {
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            !exponent.is_empty() && split_digits(exponent).1.is_empty()
        }
        rest => rest.is_empty(),
    };
    ends && !after_whole.is_empty() && !matches!(whole, [] | [b'0', _, ..])
}

/// Splits the text after the digits that begin it.
fn split_digits(text: &[u8]) -> (&[u8], &[u8]) {
    let mut end = 0;
    while let Some(word) = text[end..].first_chunk()
        && swar::no_digits(u64::from_le_bytes(*word)) == 0
    {
        end += word.len();
    }
    end += text[end..].iter().take_while(|b| b.is_ascii_digit()).count();
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::array::read_array;

    /// Reads the element as it stands in a record.
    fn one<F: LogProb>(text: &str) -> Option<F> {
        let line = format!("{{\"generation_log_probs\":[{text}]}}");
        let (found, _) = read_array(line.as_bytes(), line.find('[').unwrap()).ok()?;
        assert_eq!(found.len(), 1);
        found.first().copied()
    }

    /// Whether both types read the text to exactly these bits.
    fn same(text: &str, want: f64, narrow: f32) {
        assert_eq!(one::<f64>(text).map(f64::to_bits), Some(want.to_bits()), "{text}");
        assert_eq!(one::<f32>(text).map(f32::to_bits), Some(narrow.to_bits()), "{text}");
    }

    #[test]
    fn reads_as_the_standard_library_does() {
        for text in [
            "-0.0",
            "0.0",
            "1e400",
            "-1e400",
            "1e-400",
            "-1.5E+3",
            "2E5",
            "0e5",
            "-0e0",
            "4.9e-324",
            "2.4703282292062327e-324",
            "2.4703282292062328e-324",
            "9007199254740993.0",
            "1e23",
            "8.5899973e9",
            "-12.5",
            "-0.00012345678901234567",
            "99.99999999999999999",
            "1.1754943508222875e-38",
            "1.17549435e-38",
            "1.0e-45",
            "-7.0e-46",
            "16777217.0",
            "0.5e-00",
            "1.00000005960464477539062",
            "1.00000017881393432617187",
            "0.100000000000000000000000000000000000000000000000000000000001",
            "0.000000000000000000000000",
            "-1.5e-7",
            "-1.1920928955078125e-07",
            "2.5e-5",
            "1.25e-99",
            "9.999999999999999999",
            "18.446744073709551615",
        ] {
            same(text, text.parse().unwrap(), text.parse().unwrap());
        }
    }

    #[test]
    fn reads_integers_as_integers() {
        for (text, want, narrow) in
            [("0", 0.0, 0.0), ("-0", 0.0, 0.0), ("-7", -7.0, -7.0), ("16777219", 16_777_219.0, 16_777_220.0)]
        {
            same(text, want, narrow);
        }
        assert_eq!(one::<f64>("999999999999999999"), Some(1e18));
        assert_eq!(one::<f64>("1000000000000000000"), None);
    }

    #[test]
    fn reads_the_three_strings() {
        for (text, want) in [("Infinity", f32::INFINITY), ("-Infinity", f32::NEG_INFINITY), ("NaN", f32::NAN)] {
            same(text, want.into(), want);
            same(&format!("\"{text}\""), want.into(), want);
        }
        for odd in ["\"nan\"", "\"Infinity", "\"inf\"", "\"NaN \"", "nan", "-NaN", "+Infinity", "\"1.5\""] {
            assert_eq!(one::<f64>(odd).map(f64::to_bits), None, "{odd}");
        }
    }

    #[test]
    fn refuses_what_is_not_a_number() {
        for odd in [
            "1.",
            ".5",
            "-.5",
            "01",
            "01.5",
            "00.5",
            "-01.5",
            "1e",
            "1e+",
            "1.5e",
            "1.e5",
            "-",
            "+1.5",
            "1.5.5",
            "1.5e5e5",
            "1e5.5",
            "1.5e-",
            "1..5",
            "0.1 2",
            "true",
            "null",
            "[1.5]",
            "0x1.8",
            "1_0.5",
            "1.5f",
            "- 1.5",
            "",
            "e5",
            ".",
            "-.",
            "1.e-05",
            "0.12345678:",
            "0./2345678",
            "0.1e-0:",
            "1e-7e-7",
            "1.5ee-7",
            "1.5e-7e-7",
            "1.5-07",
            "1.5e07-",
            "1.e-7",
        ] {
            for text in [odd.to_owned(), format!("0.25,{odd}"), format!("{odd},0.25")] {
                if !text.is_empty() {
                    assert_eq!(one::<f64>(&text), None, "{text:?}");
                }
            }
        }
        assert_eq!(one::<f64>(&"1".repeat(LONGEST + 1)), None);
    }

    #[test]
    fn rounds_once_for_the_narrow_type() {
        // Just above half-way between two f32, and on it once rounded to f64.
        let text = "1.00000005960464477540";
        let half_way = 1.0 + f64::from(f32::EPSILON) / 2.0;
        assert_eq!(text.parse().map(f64::to_bits), Ok(half_way.to_bits()));
        assert_eq!(one::<f32>(text), Some(1.000_000_1));
    }
}
