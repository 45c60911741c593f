//! Writing JSON text byte for byte as orjson does.

use itoa::Integer;

use super::swar;
#[cfg(target_arch = "x86_64")]
use super::x86::{self, Avx2};

/// An integer of a type that can be written: any of up to 64 bits, signed or not.
pub trait Int: Integer + Into<i128> + Copy + Default {}

impl<T: Integer + Into<i128> + Copy + Default> Int for T {}

/// Integers that become text at once.
const BLOCK: usize = 64;

/// The bytes that are stored for each integer of a block: at most so many it has, with its comma.
const WORD: usize = 8;

/// Integers of a block are below this: a power of two with up to seven digits, so that one test does for all of them.
pub(super) const LIMIT: u64 = 1 << 23;

/// Appends the integers as a JSON array.
pub fn push_ints<T: Int>(out: &mut Vec<u8>, values: &[T]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Avx2::detect() {
        return x86::push_ints(avx2, out, values);
    }
    push_ints_portably(out, values);
}

/// Does what [`push_ints`] does, on any machine.
fn push_ints_portably<T: Int>(out: &mut Vec<u8>, values: &[T]) {
    push_ints_with(out, values, |numbers| {
        let decimals = numbers.map(swar::decimal);
        (decimals.map(|(text, _)| text), decimals.map(|(_, length)| length))
    });
}

/// Does what [`push_ints`] does, compiled for the instructions of the caller.
///
/// `decimals` does what [`swar::decimal`] does, for four numbers.
#[inline(always)]
pub(super) fn push_ints_with<T: Int>(
    out: &mut Vec<u8>,
    values: &[T],
    decimals: impl Fn([u64; 4]) -> ([u64; 4], [u64; 4]),
) {
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
#[inline(always)]
fn push_block<T: Int>(out: &mut Vec<u8>, values: &[T; BLOCK], decimals: impl Fn([u64; 4]) -> ([u64; 4], [u64; 4])) {
    // One that is negative becomes a big one.
    let word = |value: T| (value.into() as i64).cast_unsigned();
    if values.iter().fold(0, |all, &value| all | word(value)) >= LIMIT {
        return push_any(out, values);
    }
    let (fours, _) = values.as_chunks::<4>();
    let texts: [_; BLOCK / 4] = std::array::from_fn(|i| decimals(fours[i].map(word)));
    // Always eight bytes are stored and some of them overwritten: their number is known when compiling. On the stack
    // that needs no room made.
    let mut block = [0; BLOCK * WORD];
    let mut at = 0;
    for (texts, lengths) in texts {
        for (text, length) in texts.into_iter().zip(lengths) {
            block[at..at + WORD].copy_from_slice(&text.to_le_bytes());
            at += length as usize;
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

/// Appends the floats as a JSON array.
///
/// What isn't finite becomes one of the strings "NaN", "Infinity" and "-Infinity", which pydantic reads as floats.
pub fn push_floats(out: &mut Vec<u8>, values: impl IntoIterator<Item = f64>) {
    out.push(b'[');
    let start = out.len();
    for value in values {
        push_float(out, value);
        out.push(b',');
    }
    end_array(out, start);
}

/// Ends an array whose elements begin at `start`, each with a comma behind it.
fn end_array(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.pop();
    }
    out.push(b']');
}

/// Appends one float, as [`push_floats`] does.
pub fn push_float(out: &mut Vec<u8>, value: f64) {
    let text = if value.is_finite() {
        return out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    } else if value.is_nan() {
        "\"NaN\""
    } else if value > 0.0 {
        "\"Infinity\""
    } else {
        "\"-Infinity\""
    };
    out.extend_from_slice(text.as_bytes());
}

/// Appends the text as a JSON string.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(place) = rest.iter().position(|&b| b < b' ' || b == b'"' || b == b'\\') {
        out.extend_from_slice(&rest[..place]);
        push_escaped(out, rest[place]);
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends the escape for a quote, a backslash or a control character.
fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let hex = |half: u8| b"0123456789abcdef"[usize::from(half)];
            return out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]);
        }
    };
    out.extend_from_slice(&[b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut out = b"x".to_vec();
        write(&mut out);
        String::from_utf8(out).unwrap()
    }

    /// What both ways write for the integers.
    fn ints<T: Int>(values: &[T]) -> String {
        let text = written(|out| push_ints(out, values));
        assert_eq!(text, written(|out| push_ints_portably(out, values)));
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

    #[test]
    fn writes_floats_as_orjson_does() {
        // What orjson 3.13 writes; diff.py compares far more.
        let values = [
            0.0,
            -0.0,
            1.0,
            -0.5,
            0.1,
            1e15,
            1e16,
            1e17,
            123_456_789_012_345_680.0,
            1e21,
            1e22,
            1e-4,
            1e-5,
            1e-6,
            1e-7,
            1.5e300,
            5e-324,
            f64::MAX,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        assert_eq!(
            written(|out| push_floats(out, values)),
            "x[0.0,-0.0,1.0,-0.5,0.1,1000000000000000.0,1e+16,1e+17,1.2345678901234568e+17,1e+21,\
             1e+22,0.0001,0.00001,1e-6,1e-7,1.5e+300,5e-324,1.7976931348623157e+308,\"NaN\",\
             \"Infinity\",\"-Infinity\"]"
        );
    }

    #[test]
    fn escapes_as_orjson_does() {
        assert_eq!(
            written(|out| push_string(out, "a\"\\/\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}é😀z")),
            "x\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}é😀z\""
        );
        assert_eq!(written(|out| push_string(out, "")), "x\"\"");
    }
}
