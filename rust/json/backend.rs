//! The choice of the instructions by which ids are read and written.

#[cfg(target_arch = "x86_64")]
use super::avx2::{self, Avx2};
use super::halt::Reading;
use super::int_text::{self, Int};
use super::{short_ids, swar};

/// How many ids at once become numbers or text.
#[derive(Clone, Copy, Debug)]
pub(super) enum Backend {
    /// By words of eight bytes.
    Portable,
    /// By the vector instructions of x86-64.
    #[cfg(target_arch = "x86_64")]
    Avx2(Avx2),
}

impl Backend {
    /// The fastest back end of this machine. The build flag `--cfg tokenrecords_backend="scalar"` forces the portable
    /// one.
    pub(super) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        if !cfg!(tokenrecords_backend = "scalar")
            && let Some(avx2) = Avx2::detect()
        {
            return Self::Avx2(avx2);
        }
        Self::Portable
    }

    /// Reads the array of short ids whose `[` is at `open`; gives it and where its `]` is.
    ///
    /// Odd where anything is unusual.
    pub(super) fn read_short_ids(self, line: &[u8], open: usize) -> Reading<(Vec<i32>, usize)> {
        match self {
            Self::Portable => short_ids::read(line, open, swar::commas, |words| {
                let numbers = words.map(swar::last_number);
                (numbers.map(|(number, _)| number), numbers.iter().all(|(_, short)| *short))
            }),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2::read_short_ids(avx2, line, open),
        }
    }

    /// Appends the integers as a JSON array.
    fn push_ints<T: Int>(self, out: &mut Vec<u8>, values: &[T]) {
        match self {
            Self::Portable => int_text::push(out, values, |numbers| {
                let decimals = numbers.map(swar::decimal);
                (decimals.map(|(text, _)| text), decimals.map(|(_, length)| length))
            }),
            #[cfg(target_arch = "x86_64")]
            Self::Avx2(avx2) => avx2::push_ints(avx2, out, values),
        }
    }
}

/// The instructions by which this machine reads and writes ids, by name.
#[must_use]
pub fn instructions() -> &'static str {
    match Backend::detect() {
        Backend::Portable => "portable",
        #[cfg(target_arch = "x86_64")]
        Backend::Avx2(_) => "avx2",
    }
}

/// Appends the integers as a JSON array.
pub fn push_ints<T: Int>(out: &mut Vec<u8>, values: &[T]) {
    Backend::detect().push_ints(out, values);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::int_text::{BLOCK, LIMIT};
    use crate::json::short_ids::WORD;
    use proptest::prelude::*;

    /// What every back end reads where the text stands in an array.
    fn ids(text: &str) -> Option<Vec<i32>> {
        let line = format!("{{\"prompt_token_ids\":[{text}]}}");
        let open = line.find('[').unwrap();
        let found = Backend::detect().read_short_ids(line.as_bytes(), open);
        assert_eq!(found, Backend::Portable.read_short_ids(line.as_bytes(), open), "{text}");
        let (ids, close) = found.ok()?;
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

    #[test]
    fn one_of_more_digits_is_seen_with_thousands_behind_it() {
        for odd in ["12345678", "123456789"] {
            for before in [0, 1, 7, 8, 9, 63, 100] {
                let text = "3,".repeat(before) + odd + &",3".repeat(3_000);
                assert_eq!(ids(&text), None, "{odd} after {before}");
            }
        }
    }

    /// What every back end writes for the integers behind other text.
    fn ints<T: Int>(values: &[T]) -> String {
        let [text, portable] = [Backend::detect(), Backend::Portable].map(|backend| {
            let mut out = b"x".to_vec();
            backend.push_ints(&mut out, values);
            String::from_utf8(out).unwrap()
        });
        assert_eq!(text, portable);
        text
    }

    #[test]
    fn writes_every_width_of_integers() {
        assert_eq!(ints(&[0_u8; 0]), "x[]");
        assert_eq!(ints(&[i8::MIN, 0, 127]), "x[-128,0,127]");
        assert_eq!(ints(&[u16::MAX]), "x[65535]");
        assert_eq!(ints(&[i64::MIN, i64::MAX]), "x[-9223372036854775808,9223372036854775807]");
        assert_eq!(ints(&[u64::MAX]), "x[18446744073709551615]");
    }

    #[test]
    fn writes_integers_around_the_ends_of_blocks() {
        for n in [1, 2, 63, 64, 65, 127, 128, 129, 1_000] {
            for limit in [10, 300_000, i64::try_from(LIMIT).unwrap(), 300_000_000] {
                for negative in [n, n - 1, n / 2] {
                    let values: Vec<i64> =
                        (0..n).map(|i| if i == negative { -i } else { i * i * 7_919 % limit }).collect();
                    let wanted: Vec<String> = values.iter().map(ToString::to_string).collect();
                    assert_eq!(ints(&values), format!("x[{}]", wanted.join(",")));
                }
            }
        }
    }

    #[test]
    fn writes_every_length_in_every_place() {
        for place in 0..BLOCK {
            for (value, text) in (0..7)
                .flat_map(|n| [10_i32.pow(n), 8 * 10_i32.pow(n)])
                .chain([0, -1, 1 << 23, i32::MAX, i32::MIN])
                .map(|v| (v, v.to_string()))
            {
                let mut values = [12; BLOCK];
                values[place] = value;
                let mut texts = ["12"; BLOCK];
                texts[place] = &text;
                assert_eq!(ints(&values), format!("x[{}]", texts.join(",")));
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
