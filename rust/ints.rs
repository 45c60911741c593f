//! Integer elements of any width, sign and byte order, widened to token ids.

/// How an integer element is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Bytes an element.
    pub width: Width,
    /// True for two's complement, false for unsigned.
    pub signed: bool,
    /// True if the bytes stand in the order that is not this machine's own.
    pub swapped: bool,
}

/// Bytes an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// 1 byte.
    W1 = 1,
    /// 2 bytes.
    W2 = 2,
    /// 4 bytes.
    W4 = 4,
    /// 8 bytes.
    W8 = 8,
}

impl Width {
    /// The width of `bytes` bytes, if there is one.
    #[must_use]
    pub fn new(bytes: usize) -> Option<Self> {
        Some(match bytes {
            1 => Self::W1,
            2 => Self::W2,
            4 => Self::W4,
            8 => Self::W8,
            _ => return None,
        })
    }
}

/// An element that is below zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Negative {
    /// Its position.
    pub index: usize,
    /// Its value.
    pub value: i64,
}

impl Negative {
    /// The first negative word, where there is one; `at` is the position of the first word.
    ///
    /// # Panics
    /// If no word is negative.
    #[cold]
    #[must_use]
    pub fn first(at: usize, words: &[u64]) -> Self {
        let (index, word) = words.iter().enumerate().find(|(_, word)| word.cast_signed() < 0).expect("one is negative");
        Self { index: at + index, value: word.cast_signed() }
    }
}

/// Widens the elements in `raw` to 64-bit words in `out`, a negative one to its two's complement; `raw` holds exactly
/// as many as `out`. Gives the bitwise or of the words.
///
/// # Panics
/// If `raw` holds more or fewer elements than `out`.
#[allow(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
#[inline(always)]
pub fn widen(kind: Kind, raw: &[u8], out: &mut [u64]) -> u64 {
    macro_rules! each {
        ($($width:ident $signed:ty, $unsigned:ty;)*) => {
            match (kind.width, kind.signed, kind.swapped) {
                $(
                    (Width::$width, false, false) => convert(raw, out, |b| u64::from(<$unsigned>::from_ne_bytes(b))),
                    (Width::$width, false, true) => convert(raw, out, |b| u64::from(<$unsigned>::from_ne_bytes(b).swap_bytes())),
                    (Width::$width, true, false) => convert(raw, out, |b| i64::from(<$signed>::from_ne_bytes(b)).cast_unsigned()),
                    (Width::$width, true, true) => convert(raw, out, |b| i64::from(<$signed>::from_ne_bytes(b).swap_bytes()).cast_unsigned()),
                )*
            }
        };
    }
    each! { W1 i8, u8; W2 i16, u16; W4 i32, u32; W8 i64, u64; }
}

/// Converts each element and gives the bitwise or of the results. Without a branch in it, the loop becomes vector code.
#[allow(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
#[inline(always)]
fn convert<const N: usize>(raw: &[u8], out: &mut [u64], to_id: impl Fn([u8; N]) -> u64) -> u64 {
    let (elements, rest) = raw.as_chunks::<N>();
    assert!(elements.len() == out.len() && rest.is_empty(), "raw and out differ in length");
    let mut seen = 0;
    for (id, element) in out.iter_mut().zip(elements) {
        *id = to_id(*element);
        seen |= *id;
    }
    seen
}

/// True if an element in `raw` is negative.
#[must_use]
pub fn any_negative(kind: Kind, raw: &[u8]) -> bool {
    fn top_byte<const N: usize>(raw: &[u8], top: usize, or: impl Fn([u8; N], [u8; N]) -> [u8; N]) -> u8 {
        raw.as_chunks().0.iter().fold([0; N], |seen, element| or(seen, *element))[top]
    }
    macro_rules! or {
        ($integer:ty) => {
            |a, b| (<$integer>::from_ne_bytes(a) | <$integer>::from_ne_bytes(b)).to_ne_bytes()
        };
    }
    let top = if cfg!(target_endian = "big") == kind.swapped { kind.width as usize - 1 } else { 0 };
    let seen = match kind.width {
        Width::W1 => top_byte(raw, top, or!(u8)),
        Width::W2 => top_byte(raw, top, or!(u16)),
        Width::W4 => top_byte(raw, top, or!(u32)),
        Width::W8 => top_byte(raw, top, or!(u64)),
    };
    kind.signed && seen & 0x80 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(width: usize, signed: bool, swapped: bool) -> Kind {
        Kind { width: Width::new(width).unwrap(), signed, swapped }
    }

    /// The low `width` bytes of `value`, in this machine's order or the other.
    fn stored(value: i128, width: usize, swapped: bool) -> Vec<u8> {
        let mut bytes = value.to_le_bytes()[..width].to_vec();
        if cfg!(target_endian = "big") != swapped {
            bytes.reverse();
        }
        bytes
    }

    #[test]
    fn every_kind_keeps_its_extremes() {
        for width in [1, 2, 4, 8] {
            for swapped in [false, true] {
                let bits = 8 * u32::try_from(width).unwrap();
                for (signed, most) in [(false, (1_i128 << bits) - 1), (true, (1_i128 << (bits - 1)) - 1)] {
                    let values = [0, 1, 77, most - 1, most];
                    let raw: Vec<u8> = values.iter().flat_map(|&v| stored(v, width, swapped)).collect();
                    let mut out = [0; 5];
                    widen(kind(width, signed, swapped), &raw, &mut out);
                    assert_eq!(out.map(i128::from), values, "{width} bytes, signed {signed}, swapped {swapped}");
                }
            }
        }
    }

    #[test]
    fn a_negative_is_seen() {
        for width in [1, 2, 4, 8] {
            for swapped in [false, true] {
                let least = -(1_i128 << (8 * width - 1));
                let most = -1 - least;
                for (values, seen) in [([0, 5, most], false), ([0, -1, 5], true), ([least, 5, most], true)] {
                    let raw: Vec<u8> = values.iter().flat_map(|&v| stored(v, width, swapped)).collect();
                    assert_eq!(any_negative(kind(width, true, swapped), &raw), seen, "{width}, swapped {swapped}");
                    assert!(!any_negative(kind(width, false, swapped), &raw));
                }
            }
        }
    }

    #[test]
    fn the_first_negative_is_named() {
        for width in [1, 2, 4, 8] {
            for swapped in [false, true] {
                let least = -(1_i128 << (8 * width - 1));
                for value in [-1, -9, least] {
                    let raw: Vec<u8> = [5, value, 6, -2].iter().flat_map(|&v| stored(v, width, swapped)).collect();
                    let mut out = [0; 4];
                    let seen = widen(kind(width, true, swapped), &raw, &mut out);
                    assert!(seen.cast_signed() < 0);
                    assert_eq!(out.map(|word| i128::from(word.cast_signed())), [5, value, 6, -2]);
                    let found = Negative { index: 71, value: i64::try_from(value).unwrap() };
                    assert_eq!(Negative::first(70, &out), found);
                }
            }
        }
    }

    #[test]
    fn other_widths_are_none() {
        assert!([0, 3, 16].into_iter().all(|bytes| Width::new(bytes).is_none()));
    }
}
