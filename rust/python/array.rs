//! Token ids in the memory of a numpy array. Unsafe: this file reads that memory.
#![allow(unsafe_code)]

use crate::ints::{Kind, Negative, Width, widen};
use crate::source::{Source, Stored};
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

/// Elements that are copied to private memory at once. Fewer measure slower.
const PIECE: usize = 64;

/// Private memory for `PIECE` elements of up to 8 bytes, in whole cache lines: a store that is split over two of them
/// could not be forwarded to the load that follows.
#[repr(align(64))]
struct Private(MaybeUninit<[u8; 8 * PIECE]>);

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

    /// True if the dtype has a sign.
    pub fn is_signed(&self) -> bool {
        self.kind.signed
    }

    /// Writes the integers from `at` on to `out`, a negative one as its two's complement; gives their bitwise or.
    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    pub fn read_words(&self, at: usize, out: &mut [u64]) -> u64 {
        assert!(at.checked_add(out.len()).is_some_and(|end| end <= self.len), "read past the end of the array");
        let mut seen = 0;
        for (first, piece) in (at..).step_by(PIECE).zip(out.chunks_mut(PIECE)) {
            let mut private = Private(MaybeUninit::uninit());
            // SAFETY: the assertion keeps the elements `first..first + piece.len()` within the array.
            let raw = unsafe { self.copied(first, piece.len(), &mut private) };
            seen |= widen(self.kind, raw, piece);
        }
        seen
    }

    /// `count` elements from element `first` on as they are stored, at most `PIECE`, in private memory.
    ///
    /// # Safety
    /// The array has the elements `first..first + count`.
    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    unsafe fn copied<'a>(&self, first: usize, count: usize, private: &'a mut Private) -> &'a [u8] {
        // SAFETY: as the caller says.
        unsafe { self.copy(first, count, private) };
        // Another thread may write to the array while the GIL is released. Behind this line the compiler can't know
        // any more that the private memory equals the array, so that it can't read the array a second time.
        let private = black_box(&*private);
        // SAFETY: `copy` wrote as many bytes, and `private` is borrowed for as long as the slice.
        unsafe { std::slice::from_raw_parts(private.0.as_ptr().cast(), self.kind.width as usize * count) }
    }

    /// Copies `count` elements from element `first` on to private memory, at most `PIECE`.
    ///
    /// # Safety
    /// The array has the elements `first..first + count`.
    #[expect(clippy::inline_always, reason = "to be compiled for the vector instructions of the caller")]
    #[inline(always)]
    unsafe fn copy(&self, first: usize, count: usize, private: &mut Private) {
        assert!(count <= PIECE, "more elements than private memory");
        let width = self.kind.width as usize;
        let to: *mut u8 = private.0.as_mut_ptr().cast();
        // SAFETY: numpy vouches for `len` elements at `data`, `stride` bytes apart, whatever its sign, and the caller for
        // these to be among them; they may have any alignment, as bytes do. `private` holds 8 bytes for each of them, and
        // can't overlap with an array that is older.
        unsafe {
            let from = self.data.offset(first.cast_signed() * self.stride);
            if self.stride != width.cast_signed() {
                for i in 0..count {
                    let element = from.offset(i.cast_signed() * self.stride);
                    to.add(i * width).copy_from_nonoverlapping(element, width);
                }
            } else if count == PIECE {
                // The usual case apart, because its length is known when compiling but for the width.
                match self.kind.width {
                    Width::W1 => to.copy_from_nonoverlapping(from, PIECE),
                    Width::W2 => to.copy_from_nonoverlapping(from, 2 * PIECE),
                    Width::W4 => to.copy_from_nonoverlapping(from, 4 * PIECE),
                    Width::W8 => to.copy_from_nonoverlapping(from, 8 * PIECE),
                }
            } else {
                to.copy_from_nonoverlapping(from, width * count);
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
        if self.kind.signed && seen.cast_signed() < 0 {
            return Err(Negative::first(at, out));
        }
        Ok(())
    }

    fn read_stored(&self, at: usize, count: usize, out: &mut Stored) -> Option<Kind> {
        assert!(at.checked_add(count).is_some_and(|end| end <= self.len), "read past the end of the array");
        let bytes = self.kind.width as usize;
        let places = out[..bytes * count].chunks_mut(bytes * PIECE);
        for (first, place) in (at..).step_by(PIECE).zip(places) {
            let mut private = Private(MaybeUninit::uninit());
            // SAFETY: the assertion keeps the elements within the array.
            place.copy_from_slice(unsafe { self.copied(first, place.len() / bytes, &mut private) });
        }
        Some(self.kind)
    }
}
