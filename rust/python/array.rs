//! Token ids in the memory of a numpy array. Unsafe: this file reads that memory.
#![allow(unsafe_code)]

use crate::ints::{Kind, Negative, Width, widen, widen_ids};
use crate::source::{CHUNK, Source};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::hint::black_box;
use std::mem::MaybeUninit;

/// A one-dimensional array of integers, by its address.
///
/// It does not keep the array alive: whoever makes one keeps a reference to the array for longer.
#[derive(Clone)]
pub struct ArrayView {
    data: *const u8,
    len: usize,
    /// Bytes from one element to the next; zero and negative for broadcast and reversed views.
    stride: isize,
    kind: Kind,
}

// SAFETY: the view only reads, by plain address, and memory that another thread writes to meanwhile is copied
// before anything depends on its value (see `read`).
unsafe impl Send for ArrayView {}
// SAFETY: as above.
unsafe impl Sync for ArrayView {}

impl ArrayView {
    /// A view of `array`, or `None` where it is not one-dimensional or holds no integers.
    pub fn new(array: &Bound<'_, PyUntypedArray>) -> Option<Self> {
        let (&[len], &[stride]) = (array.shape(), array.strides()) else { return None };
        let dtype = array.dtype();
        let signed = match dtype.kind() {
            b'i' => true,
            b'u' => false,
            _ => return None,
        };
        let kind =
            Kind { width: Width::new(dtype.itemsize())?, signed, swapped: dtype.is_native_byteorder() == Some(false) };
        // SAFETY: `array` is a live ndarray, so the pointer to its struct is valid.
        let data = unsafe { (*array.as_array_ptr()).fields.data };
        Some(Self { data: data.cast_const().cast(), len, stride, kind })
    }

    /// The ids from `start` to before `end`, as far as there are any.
    pub fn piece(self, start: usize, end: usize) -> Self {
        let end = end.min(self.len);
        let start = start.min(end);
        // An address that is never read where the piece is empty, hence the wrapping arithmetic.
        let data = self.data.wrapping_offset(start.cast_signed().wrapping_mul(self.stride));
        Self { data, len: end - start, ..self }
    }

    /// Writes the integers from `at` on to `out`, a negative one as its two's complement.
    pub fn read_words(&self, at: usize, out: &mut [u64]) {
        for (start, piece) in (at..).step_by(CHUNK).zip(out.chunks_mut(CHUNK)) {
            self.read_chunk(start, piece, widen);
        }
    }

    /// True if the dtype has a sign.
    pub fn is_signed(&self) -> bool {
        self.kind.signed
    }

    /// Copies elements `at..at + out.len()`, at most `CHUNK` of them, and lets `widen` write them to `out`.
    #[inline]
    fn read_chunk<T>(&self, at: usize, out: &mut [u64], widen: impl Fn(Kind, &[u8], &mut [u64]) -> T) -> T {
        assert!(out.len() <= CHUNK && at + out.len() <= self.len, "read past the end of the array");
        let width = self.kind.width as usize;
        let mut block = [MaybeUninit::<u8>::uninit(); 8 * CHUNK];
        let private: *mut u8 = block.as_mut_ptr().cast();
        for (i, step) in (0..out.len()).zip((0..).step_by(width)) {
            if self.stride == width.cast_signed() {
                // SAFETY: numpy vouches for `len` elements at `data`, `stride` bytes apart, whatever the signs, and
                // the assertion keeps `at..at + out.len()` within them; here they are adjacent, so that one copy
                // takes them all. `block` holds 8 bytes for each of `CHUNK` elements. The two can't overlap:
                // `block` is new.
                unsafe {
                    let first = self.data.offset(at.cast_signed() * self.stride);
                    private.copy_from_nonoverlapping(first, width * out.len());
                }
                break;
            }
            // SAFETY: as above, for one element; its address may have any alignment, as bytes do.
            unsafe {
                let element = self.data.offset((at + i).cast_signed() * self.stride);
                private.add(step).copy_from_nonoverlapping(element, width);
            }
        }
        // Another thread may write to the array while the GIL is released. Behind this line the compiler can't
        // know any more that the block equals the array, so that it can't read the array a second time.
        let private = black_box(private);
        // SAFETY: the first `width * out.len()` bytes of `block` were written above, and `block` outlives the slice.
        let raw = unsafe { std::slice::from_raw_parts(private, width * out.len()) };
        widen(self.kind, raw, out)
    }
}

impl Source for ArrayView {
    type Error = Negative;

    fn len(&self) -> usize {
        self.len
    }

    fn read(&self, at: usize, out: &mut [u64]) -> Result<(), Negative> {
        for (start, piece) in (at..).step_by(CHUNK).zip(out.chunks_mut(CHUNK)) {
            self.read_chunk(start, piece, widen_ids)
                .map_err(|found| Negative { index: start + found.index, ..found })?;
        }
        Ok(())
    }
}
