//! Writing JSON text: compact, floats in the shortest form that reads back, only what must be escaped escaped.

/// Appends the floats as a JSON array.
///
/// What isn't finite becomes one of the strings "NaN", "Infinity" and "-Infinity".
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
pub(super) fn end_array(out: &mut Vec<u8>, start: usize) {
    if out.len() > start {
        out.pop();
    }
    out.push(b']');
}

/// What stands in one cache line. A float's text is stored in pieces and loaded at once, which waits where a piece is
/// split over two lines.
///
/// Measured on a Zen 5 server core over the log-probs of a record: 29 ns a float, and up to 41 without, as the stack
/// happens to lie.
#[repr(align(64))]
struct CacheLine<T>(T);

/// Appends one float, as [`push_floats`] does.
#[inline]
pub fn push_float(out: &mut Vec<u8>, value: f64) {
    let text = if value.is_finite() {
        let mut buffer = CacheLine(zmij::Buffer::new());
        return out.extend_from_slice(buffer.0.format_finite(value).as_bytes());
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
    fn writes_floats_in_their_shortest_form() {
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
    fn escapes_what_must_be_escaped() {
        assert_eq!(
            written(|out| push_string(out, "a\"\\/\n\r\t\u{8}\u{c}\0\u{1f}\u{7f}é😀z")),
            "x\"a\\\"\\\\/\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}é😀z\""
        );
        assert_eq!(written(|out| push_string(out, "")), "x\"\"");
    }
}
