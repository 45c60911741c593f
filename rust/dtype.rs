//! What an id is stored as: integers of any width, sign and byte order, widened to 64-bit words.

/// How an integer element is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dtype {
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
    #[expect(clippy::expect_used, reason = "who asks has seen that one is negative")]
    pub fn first(at: usize, words: &[u64]) -> Self {
        let (index, word) = words.iter().enumerate().find(|(_, word)| word.cast_signed() < 0).expect("one is negative");
        Self { index: at + index, value: word.cast_signed() }
    }
}

/// Work on elements that is compiled for every dtype.
pub trait Visitor {
    /// Does the work on elements of `N` bytes. `widen` makes a 64-bit word of an element, of a negative one its two's
    /// complement.
    fn visit<const N: usize>(self, widen: impl Fn([u8; N]) -> u64);
}

impl Dtype {
    /// Does the work of `visitor` on elements of this dtype, `N` being their width.
    // Inlined to be compiled for the vector instructions of the caller.
    #[inline(always)]
    pub fn visit(self, visitor: impl Visitor) {
        macro_rules! each {
            ($($width:ident $signed:ty, $unsigned:ty;)*) => {
                match (self.width, self.signed, self.swapped) {
                    $(
                        (Width::$width, false, false) => {
                            visitor.visit(|b| u64::from(<$unsigned>::from_ne_bytes(b)))
                        }
                        (Width::$width, false, true) => {
                            visitor.visit(|b| u64::from(<$unsigned>::from_ne_bytes(b).swap_bytes()))
                        }
                        (Width::$width, true, false) => {
                            visitor.visit(|b| i64::from(<$signed>::from_ne_bytes(b)).cast_unsigned())
                        }
                        (Width::$width, true, true) => {
                            visitor.visit(|b| i64::from(<$signed>::from_ne_bytes(b).swap_bytes()).cast_unsigned())
                        }
                    )*
                }
            };
        }
        each! { W1 i8, u8; W2 i16, u16; W4 i32, u32; W8 i64, u64; }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dtype(width: usize, signed: bool, swapped: bool) -> Dtype {
        Dtype { width: Width::new(width).unwrap(), signed, swapped }
    }

    /// Widens elements that stand side by side.
    struct Widen<'a>(&'a [u8], &'a mut Vec<u64>);

    impl Visitor for Widen<'_> {
        fn visit<const N: usize>(self, widen: impl Fn([u8; N]) -> u64) {
            let (elements, rest) = self.0.as_chunks();
            assert!(rest.is_empty());
            self.1.extend(elements.iter().map(|&element| widen(element)));
        }
    }

    fn widened(dtype: Dtype, raw: &[u8]) -> Vec<u64> {
        let mut out = Vec::new();
        dtype.visit(Widen(raw, &mut out));
        out
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
    fn every_dtype_keeps_its_extremes() {
        for width in [1, 2, 4, 8] {
            for swapped in [false, true] {
                let bits = 8 * u32::try_from(width).unwrap();
                for (signed, most) in [(false, (1_i128 << bits) - 1), (true, (1_i128 << (bits - 1)) - 1)] {
                    let values = [0, 1, 77, most - 1, most];
                    let raw: Vec<u8> = values.iter().flat_map(|&v| stored(v, width, swapped)).collect();
                    let words = widened(dtype(width, signed, swapped), &raw);
                    let words: Vec<_> = words.into_iter().map(i128::from).collect();
                    assert_eq!(words, values, "{width} bytes, signed {signed}, swapped {swapped}");
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
                    let raw: Vec<u8> = [0, value, 6, -2].iter().flat_map(|&v| stored(v, width, swapped)).collect();
                    let words = widened(dtype(width, true, swapped), &raw);
                    let signed: Vec<_> = words.iter().map(|word| i128::from(word.cast_signed())).collect();
                    assert_eq!(signed, [0, value, 6, -2]);
                    let found = Negative { index: 71, value: i64::try_from(value).unwrap() };
                    assert_eq!(Negative::first(70, &words), found);
                }
            }
        }
    }

    #[test]
    fn other_widths_are_none() {
        assert!([0, 3, 16].into_iter().all(|bytes| Width::new(bytes).is_none()));
    }
}
