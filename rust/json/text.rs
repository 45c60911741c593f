//! Writing JSON text byte for byte as orjson does.

use itoa::Integer;

use super::swar;

/// Integers that are written to a block on the stack before they go to the output.
const BLOCK: usize = 64;

/// The most bytes of an integer that is written to the block, with its comma.
const SHORT: usize = 9;

/// Appends the integers as a JSON array.
pub fn push_ints<T>(out: &mut Vec<u8>, values: impl IntoIterator<Item = T>)
where
    T: Integer + TryInto<u32> + Copy,
{
    let mut values = values.into_iter().peekable();
    out.push(b'[');
    let start = out.len();
    while values.peek().is_some() {
        // Always eight bytes are written and some of them overwritten: their number is known when compiling. On the
        // stack that needs no test for room.
        let mut block = [0; BLOCK * SHORT];
        let mut at = 0;
        for value in values.by_ref().take(BLOCK) {
            if let Ok(short @ 0..100_000_000) = value.try_into() {
                let (text, length) = swar::decimal(short);
                block[at..at + 8].copy_from_slice(&text);
                at += length;
                block[at] = b',';
                at += 1;
            } else {
                out.extend_from_slice(&block[..at]);
                at = 0;
                out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
                out.push(b',');
            }
        }
        out.extend_from_slice(&block[..at]);
    }
    end_array(out, start);
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

    #[test]
    fn writes_every_width_of_integers() {
        assert_eq!(written(|out| push_ints(out, [0_u8; 0])), "x[]");
        assert_eq!(written(|out| push_ints(out, [i8::MIN, 0, 127])), "x[-128,0,127]");
        assert_eq!(written(|out| push_ints(out, [u16::MAX])), "x[65535]");
        assert_eq!(written(|out| push_ints(out, [i64::MIN, i64::MAX])), "x[-9223372036854775808,9223372036854775807]");
        assert_eq!(written(|out| push_ints(out, [u64::MAX])), "x[18446744073709551615]");
    }

    #[test]
    fn writes_integers_around_the_ends_of_blocks() {
        for n in [1, 2, 63, 64, 65, 128, 129, 1_000] {
            let values: Vec<i64> = (0..n).map(|i| if i % 5 == 4 { -i } else { i * i * 7 % 300_000_000 }).collect();
            let wanted: Vec<String> = values.iter().map(ToString::to_string).collect();
            assert_eq!(written(|out| push_ints(out, values.iter().copied())), format!("x[{}]", wanted.join(",")));
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
