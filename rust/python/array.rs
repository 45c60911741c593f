//! Token ids in the memory of a numpy array. Unsafe: this file reads that memory.
#![allow(unsafe_code)]

use crate::dtype::{Dtype, Negative, Visitor, Width};
use crate::source::Source;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::hint::black_box;

/// A one-dimensional array of integers, by its address.
///
/// It does not keep the array alive: whoever makes one keeps a reference to the array for longer.
#[derive(Clone)]
pub struct ArrayView {
    data: *const u8,
    len: usize,
    /// Bytes from one element to the next; zero and negative for broadcast and reversed views.
    stride: isize,
    dtype: Dtype,
}

// SAFETY: the view only reads, by plain address, and memory that another thread writes to meanwhile is copied
// before anything depends on its value (see `read_words`).
unsafe impl Send for ArrayView {}
// SAFETY: as above.
unsafe impl Sync for ArrayView {}

impl ArrayView {
    /// A view of `array`, or `None` where it is not one-dimensional or holds no integers.
    pub fn new(array: &Bound<'_, PyUntypedArray>) -> Option<Self> {
        let (&[len], &[stride]) = (array.shape(), array.strides()) else { return None };
        let descr = array.dtype();
        let signed = match descr.kind() {
            b'i' => true,
            b'u' => false,
            _ => return None,
        };
        let dtype =
            Dtype { width: Width::new(descr.itemsize())?, signed, swapped: descr.is_native_byteorder() == Some(false) };
        // SAFETY: `array` is a live ndarray, so the pointer to its struct is valid.
        let data = unsafe { (*array.as_array_ptr()).fields.data };
        Some(Self { data: data.cast_const().cast(), len, stride, dtype })
    }

    /// The ids from `start` to before `end`, as far as there are any.
    pub fn piece(self, start: usize, end: usize) -> Self {
        let end = end.min(self.len);
        let start = start.min(end);
        // An address that is never read where the piece is empty, hence the wrapping arithmetic.
        let data = self.data.wrapping_offset(start.cast_signed().wrapping_mul(self.stride));
        Self { data, len: end - start, ..self }
    }

    /// True if the dtype has a sign.
    pub fn is_signed(&self) -> bool {
        self.dtype.signed
    }

    /// Writes the integers from `at` on to `out`, a negative one as its two's complement; gives their bitwise or.
    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    pub fn read_words(&self, at: usize, out: &mut [u64]) -> u64 {
        assert!(at.checked_add(out.len()).is_some_and(|end| end <= self.len), "read past the end of the array");
        self.dtype.visit(Reading { array: self, at, out: &mut *out });
        // Another thread may write to the array while the GIL is released. Behind this line the compiler can't know any
        // more that `out` equals what it read from the array, so that it can't read the array a second time.
        black_box(out).iter().fold(0, |seen, word| seen | word)
    }
}

/// Widens the elements from `at` on into `out`, and reads each of them once. Only `read_words` makes one, of elements that
/// the array has.
struct Reading<'a> {
    array: &'a ArrayView,
    at: usize,
    out: &'a mut [u64],
}

impl Visitor for Reading<'_> {
    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    fn visit<const N: usize>(self, widen: impl Fn([u8; N]) -> u64) {
        let stride = self.array.stride;
        // SAFETY: numpy vouches for `len` elements at `data`, `stride` bytes apart, whatever its sign; `at` is the index of
        // one, or `len`.
        let from = unsafe { self.array.data.offset(self.at.cast_signed() * stride) };
        if stride == N.cast_signed() {
            // The usual case apart: with the stride known when compiling, the loop becomes vector code.
            for (i, word) in self.out.iter_mut().enumerate() {
                // SAFETY: as above, element `at + i` is in the array. It may have any alignment, as bytes do.
                *word = widen(unsafe { *from.cast::<[u8; N]>().add(i) });
            }
        } else {
            for (i, word) in self.out.iter_mut().enumerate() {
                // SAFETY: as above.
                *word = widen(unsafe { *from.offset(i.cast_signed() * stride).cast() });
            }
        }
    }
}

impl Source for ArrayView {
    type Error = Negative;

    fn len(&self) -> usize {
        self.len
    }

    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Negative> {
        let seen = self.read_words(at, out);
        // Sign extension carries the sign of every narrower element to bit 63, so one test serves them all.
        if self.dtype.signed && seen.cast_signed() < 0 {
            return Err(Negative::first(at, out));
        }
        Ok(())
    }
}
