//! Token ids in the memory of a numpy array.
//!
//! A view reads that memory by address, without the GIL, while another thread may write to it: the race is real. In the
//! rules of Rust's memory model such a race is undefined; what is done about it is all that can be done at full speed.
//! Each element is loaded once, as bytes that are a value whatever they are, into words of our own; these are checked
//! and used, never the array again. So a race can change only which ids were read, as it can for any code without a
//! lock.
//!
//! The memory itself stays where it is for as long as the view holds its reference to the array:
//!
//! - numpy frees it when the array dies, or the last view on it, whose `base` the array then is.
//! - `ndarray.resize` moves it, and refuses to where it counts a reference besides the caller's. (On Python 3.14, numpy
//!   before 2.4 misses one.)
//! - Setting `shape`, `strides` or `dtype` changes what the array says of its memory, which was read when the view was
//!   made; `setflags`, `sort` and `byteswap` move nothing. `data` cannot be set in numpy 2.
//! - An array over another object's memory (a buffer, a tensor) keeps that object, which keeps the memory as it promised.
//!
//! Two calls remain that free memory under any reference, numpy's own views included: `resize(refcheck=False)`, whose
//! caller vouches that nobody else uses the array, and `__setstate__`, which is for unpickling. Who calls one of these
//! on an array while it is read here reads freed memory, as with every other reader of numpy arrays.
#![expect(unsafe_code, reason = "reads the memory of numpy arrays")]

use super::prefetch::prefetch_next;
use crate::dtype::{Dtype, Negative, Visitor, Width};
use crate::source::Source;
use numpy::npyffi::{PY_ARRAY_API, PyArrayObject};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use std::hint::black_box;

/// A one-dimensional array of integers, and where its elements are.
pub struct ArrayView {
    /// Keeps the memory that `data` points to.
    array: Py<PyUntypedArray>,
    /// The first element.
    data: *const u8,
    /// The number of elements.
    len: usize,
    /// Bytes from one element to the next; zero and negative for broadcast and reversed views.
    stride: isize,
    /// What an element is stored as.
    dtype: Dtype,
}

// SAFETY: only `data` is not `Send` by itself. It points to memory that `array` keeps, whichever thread the view is in
// and whichever drops it: a `Py` may be dropped anywhere.
unsafe impl Send for ArrayView {}
// SAFETY: nothing changes the view, and it only reads the memory: threads that share it race with each other no more
// than with whoever writes to the array. The head of this file says what such a race can do.
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
        // SAFETY: `array` is a live ndarray, so that the pointer to its struct is valid.
        let data = unsafe { (*array.as_array_ptr()).fields.data };
        Some(Self { array: array.clone().unbind(), data: data.cast_const().cast(), len, stride, dtype })
    }

    /// The ids from `start` to before `end`, as far as there are any.
    pub fn piece(&self, py: Python<'_>, start: usize, end: usize) -> Self {
        let end = end.min(self.len);
        let start = start.min(end);
        // An address that is never read where the piece is empty, hence the wrapping arithmetic.
        let data = self.data.wrapping_offset(start.cast_signed().wrapping_mul(self.stride));
        Self { array: self.array.clone_ref(py), data, len: end - start, stride: self.stride, dtype: self.dtype }
    }

    /// The elements of both parts, one after the other, as a new array; None where their dtypes differ.
    pub fn joined<'py>(py: Python<'py>, parts: [&Self; 2]) -> PyResult<Option<Bound<'py, PyAny>>> {
        if parts[0].dtype != parts[1].dtype {
            return Ok(None);
        }
        let mut len = (parts[0].len + parts[1].len).cast_signed();
        let descr = parts[0].array.bind(py).dtype().into_dtype_ptr();
        // SAFETY: the thread is attached; `len` is the one dimension, and the call takes the reference to the dtype.
        let joined = unsafe { PY_ARRAY_API.PyArray_Empty(py, 1, &raw mut len, descr, 0) };
        // SAFETY: it is a new reference, or null with an error set.
        let joined = unsafe { Bound::from_owned_ptr_or_err(py, joined) }?;
        // SAFETY: what numpy gave is a live array.
        let mut to: *mut u8 = unsafe { (*joined.as_ptr().cast::<PyArrayObject>()).fields.data }.cast();
        for part in parts {
            // SAFETY: the new array, which nobody else knows, has room for both parts, whose widths are equal; this
            // one's begins at `to`.
            unsafe { part.copy_to(to) };
            to = to.wrapping_add(part.len * part.dtype.width as usize);
        }
        Ok(Some(joined))
    }

    /// Copies the bytes of each element, once, to `to`.
    ///
    /// # Safety
    /// There are as many writable bytes at `to`, which are not those of the array.
    unsafe fn copy_to(&self, to: *mut u8) {
        let width = self.dtype.width as usize;
        if self.stride == width.cast_signed() {
            // SAFETY: numpy vouches for `len` elements at `data`, without gaps; the caller for those at `to`.
            return unsafe { self.data.copy_to_nonoverlapping(to, self.len * width) };
        }
        for i in 0..self.len {
            let element = self.data.wrapping_offset(i.cast_signed() * self.stride);
            // SAFETY: as above, `stride` bytes apart.
            unsafe { element.copy_to_nonoverlapping(to.wrapping_add(i * width), width) };
        }
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
        // Behind this line the compiler can't know any more that `out` equals what was read from the array, so that it
        // won't read the array a second time. (`black_box` is a hint by its docs; the compiler in use takes it.)
        black_box(out).iter().fold(0, |seen, word| seen | word)
    }
}

/// Widens the elements from `at` on into `out`, and reads each of them once. Only `read_words` makes one, of elements
/// that the array has.
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
        // An address that is never read where `out` is empty, hence the wrapping arithmetic.
        let from = self.array.data.wrapping_offset(self.at.cast_signed().wrapping_mul(stride));
        // The usual stride apart: with it known when compiling, the loop becomes vector code.
        if stride == N.cast_signed() {
            prefetch_next(from.cast::<[u8; N]>(), self.out.len());
            for (i, word) in self.out.iter_mut().enumerate() {
                // SAFETY: numpy vouches for `len` elements at `data`, `stride` bytes apart, and `at + i` is below
                // `len`.
                let element = unsafe { from.cast::<[u8; N]>().add(i) };
                // SAFETY: as above. The element may have any alignment, as bytes do, and any bytes are a value.
                *word = widen(unsafe { *element });
            }
        } else {
            for (i, word) in self.out.iter_mut().enumerate() {
                // SAFETY: as above, whatever the sign of `stride`.
                let element = unsafe { from.offset(i.cast_signed() * stride) };
                // SAFETY: as above.
                *word = widen(unsafe { *element.cast::<[u8; N]>() });
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
