//! Any Python object that holds token ids, as a source.

use super::array::ArrayView;
use super::errors::{self, Name, because, no_stop, shown, type_name};
use super::items;
use crate::digest::{Hash, digest};
use crate::dtype::Negative;
use crate::prefixes::{Side, stands_at};
use crate::sha256::Backend;
use crate::source::{Parts, Source};
use crate::wire;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMapping, PyMemoryView, PySequence, PyString, PyTuple, PyType};

/// Hashing more bytes than this releases the GIL: the threshold of Python's hashlib (`HASHLIB_GIL_MINSIZE`).
const GIL_MIN_SIZE: usize = 2_048;

/// A sequence of token ids from Python, under the name that error messages give it.
#[derive(Clone)]
pub struct Tokens<'py, 'a> {
    name: Name<'a>,
    ids: Ids<'py>,
}

#[derive(Clone)]
enum Ids<'py> {
    Array(ArrayView, Owner<'py>),
    /// The list and its length at first. It may change while an item's `__index__` runs; what was said of it must not.
    List(Bound<'py, PyList>, usize),
    Tuple(Bound<'py, PyTuple>),
}

/// The array whose memory a view reads: never used, only kept.
pub type Owner<'py> = Bound<'py, PyUntypedArray>;

impl<'py, 'a> Tokens<'py, 'a> {
    /// The ids in `object`, by the fastest way for its kind.
    pub fn new(name: Name<'a>, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let ids = if let Ok(array) = object.cast::<PyUntypedArray>() {
            Ids::from_array(name, array)?
        } else if let Ok(list) = object.cast_exact::<PyList>() {
            Ids::from_items(list.clone())
        } else if let Ok(tuple) = object.cast_exact::<PyTuple>() {
            Ids::Tuple(tuple.clone())
        } else {
            Ids::from_other(name, object).map_err(|error| no_stop(object.py(), error, name))?
        };
        Ok(Self { name, ids })
    }

    /// The ids from `start` to before `end`, as far as there are any.
    pub fn piece(self, start: usize, end: usize) -> Self {
        let ids = match self.ids {
            Ids::Array(view, owner) => Ids::Array(view.piece(start, end), owner),
            Ids::List(list, _) => Ids::from_items(list.get_slice(start, end)),
            Ids::Tuple(tuple) => Ids::Tuple(tuple.get_slice(start, end)),
        };
        Self { ids, ..self }
    }

    /// The same ids under another name.
    pub fn named(self, name: Name<'a>) -> Self {
        Self { name, ..self }
    }

    /// The view, where the ids stand in the memory of an array.
    pub fn view(&self) -> Option<&ArrayView> {
        self.view_and_owner().map(|(view, _)| view)
    }

    /// The view and the array whose memory it reads.
    pub fn view_and_owner(&self) -> Option<(&ArrayView, &Owner<'py>)> {
        match &self.ids {
            Ids::Array(view, owner) => Some((view, owner)),
            _ => None,
        }
    }

    /// Writes the encoding to `out`, of the right length.
    pub fn encode(&self, out: &mut [u8]) -> PyResult<()> {
        match self.view() {
            Some(view) => Backend::detect().inside(
                #[inline(always)]
                || wire::encode(view, out).map_err(|found| self.negative(found)),
            ),
            None => wire::encode(self, out),
        }
    }

    /// The list that holds the ids, if it is one.
    pub fn list(&self) -> Option<&Bound<'py, PyList>> {
        match &self.ids {
            Ids::List(list, _) => Some(list),
            _ => None,
        }
    }

    /// The error for a negative element of the view.
    pub fn negative(&self, found: Negative) -> PyErr {
        errors::negative(self.name, found.index, found.value)
    }
}

impl Source for Tokens<'_, '_> {
    type Error = PyErr;

    fn len(&self) -> usize {
        match &self.ids {
            Ids::Array(view, _) => view.len(),
            Ids::List(_, len) => *len,
            Ids::Tuple(tuple) => tuple.len(),
        }
    }

    fn read(&self, at: usize, out: &mut [u64]) -> PyResult<()> {
        match &self.ids {
            Ids::Array(view, _) => view.read(at, out).map_err(|found| self.negative(found)),
            Ids::List(list, _) => items::read(list, self.name, at, out),
            Ids::Tuple(tuple) => items::read(tuple, self.name, at, out),
        }
    }
}

impl<'py> Ids<'py> {
    fn from_array(name: Name<'_>, array: &Bound<'py, PyUntypedArray>) -> PyResult<Self> {
        let py = array.py();
        refuse_masked(name, array)?;
        if let Some(view) = ArrayView::new(array) {
            return Ok(Self::Array(view, array.clone()));
        }
        let dtype = array.dtype();
        match array.ndim() {
            0 => Err(PyTypeError::new_err(format!("{name} is a scalar of dtype {dtype}: a sequence is needed"))),
            1 if dtype.kind() == b'O' => Ok(Self::from_items(array.call_method0(intern!(py, "tolist"))?.cast_into()?)),
            // numpy.array([]) is a float array, and it is what people write for no ids.
            1 if array.is_empty() && matches!(dtype.kind(), b'f' | b'c') => Ok(Self::Tuple(PyTuple::empty(py))),
            1 => Err(PyTypeError::new_err(format!("{name} has dtype {dtype}: token ids must be integers"))),
            n => Err(PyValueError::new_err(format!(
                "{name} has shape {}: one dimension is needed, got {n}",
                array.getattr(intern!(py, "shape"))?
            ))),
        }
    }

    fn from_other(name: Name<'_>, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        refuse(name, object)?;
        if let Some(array) = exported(name, object)? {
            return Self::from_array(name, &array);
        }
        if object.cast::<PySequence>().is_ok() || is_sized_and_indexed(object)? {
            let len = object.len()?;
            let list: Bound<'_, PyList> = PyList::type_object(py).call1((object,))?.cast_into()?;
            if list.len() != len {
                let message =
                    format!("{name} is of type {}: it gave {} items, not its {len}", type_name(object), list.len());
                return Err(PyValueError::new_err(message));
            }
            return Ok(Self::from_items(list));
        }
        Err(not_a_sequence(name, object))
    }

    fn from_items(list: Bound<'py, PyList>) -> Self {
        let len = list.len();
        Self::List(list, len)
    }
}

/// The array that `object` is, or the zero-copy array over it; None for what exports no array.
pub fn array_over<'py>(name: Name<'_>, object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
    let py = object.py();
    if let Ok(array) = object.cast::<PyUntypedArray>() {
        refuse_masked(name, array)?;
        return Ok(Some(array.clone()));
    }
    if [PyList::type_object(py), PyTuple::type_object(py), PyString::type_object(py), PyBytes::type_object(py)]
        .iter()
        .any(|kind| object.is_exact_instance(kind))
    {
        return Ok(None);
    }
    if is_packed_bytes(object)? {
        return Err(packed(name, object));
    }
    exported(name, object).map_err(|error| no_stop(py, error, name))
}

/// The array that numpy makes of an object with the buffer protocol, `__array__` or `__dlpack__`, without a copy.
fn exported<'py>(name: Name<'_>, object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
    let py = object.py();
    let convert = if has_buffer(object) || object.hasattr(intern!(py, "__array__"))? {
        // Not asarray, which drops the mask of a masked array.
        intern!(py, "asanyarray")
    } else if object.hasattr(intern!(py, "__dlpack__"))? {
        intern!(py, "from_dlpack")
    } else {
        return Ok(None);
    };
    let array = py.import(intern!(py, "numpy"))?.call_method1(convert, (object,)).map_err(|cause| {
        let kind = type_name(object);
        let error = PyTypeError::new_err(format!("{name} is of type {kind}, which gives no array on the CPU: {cause}"));
        because(py, error, cause)
    })?;
    let array = array.cast_into()?;
    refuse_masked(name, &array)?;
    Ok(Some(array))
}

fn refuse_masked(name: Name<'_>, array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
    let py = array.py();
    if array.get_type().is(PyUntypedArray::type_object(py)) || !array.is_instance(masked_array(py)?)? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{name} is a masked array: a masked position holds no value; use its .compressed() or .filled()"
    )))
}

fn packed(name: Name<'_>, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = type_name(object);
    PyTypeError::new_err(format!(
        "{name} is of type {kind}: bytes are not a token sequence (packed ids would be hashed as byte values); \
         give their dtype, as in numpy.frombuffer(data, dtype='<i4')"
    ))
}

/// An error for what has a length and items but is no sequence of token ids.
fn refuse(name: Name<'_>, object: &Bound<'_, PyAny>) -> PyResult<()> {
    let kind = type_name(object);
    let error = |why: &str| Err(PyTypeError::new_err(format!("{name} is of type {kind}: {why}")));
    if object.is_instance_of::<PyString>() {
        return error("text is not a token sequence; tokenize it first");
    }
    if is_packed_bytes(object)? {
        return Err(packed(name, object));
    }
    if object.cast::<PyMapping>().is_ok() {
        return error("a mapping is not a token sequence");
    }
    if is_set(object)? {
        return error("a set is unordered, a token sequence is not");
    }
    Ok(())
}

/// True for buffers of plain bytes: `bytes`, `bytearray`, `mmap`, and memoryviews with one byte an element.
///
/// An `array.array` or a `ctypes` array says by its type that its bytes are small ints.
fn is_packed_bytes(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let py = object.py();
    if object.is_instance_of::<PyBytes>() || object.is_instance_of::<PyByteArray>() {
        return Ok(true);
    }
    if !has_buffer(object) || type_name(object) == "array" {
        return Ok(false);
    }
    // A released memoryview has no format; numpy says so.
    let Ok(view) = PyMemoryView::from(object) else { return Ok(false) };
    let format: String = view.getattr(intern!(py, "format"))?.extract()?;
    let byte_orders: &[char] = if object.is_instance_of::<PyMemoryView>() { &['@', '=', '<', '>', '!'] } else { &[] };
    Ok(matches!(format.trim_start_matches(byte_orders), "B" | "b" | "c"))
}

fn not_a_sequence(name: Name<'_>, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = type_name(object);
    PyTypeError::new_err(match object.is_none() {
        true => format!("{name} is None: a sequence of token ids is needed"),
        false => format!("{name} is {}: a sequence of token ids is needed, got {kind}", shown(object)),
    })
}

/// Asked by a memoryview, because a `ctypes` array exports no strides, which `PyUntypedBuffer` takes for a fault.
fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyMemoryView>() || PyMemoryView::from(object).is_ok()
}

/// True for what has `__len__` and `__getitem__` without saying that it is a sequence.
fn is_sized_and_indexed(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = object.get_type();
    Ok(kind.hasattr(intern!(object.py(), "__len__"))? && kind.hasattr(intern!(object.py(), "__getitem__"))?)
}

fn masked_array(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TYPE.import(py, "numpy.ma", "MaskedArray")
}

/// True for sets of any kind, and the views of a dict.
pub fn is_set(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    object.is_instance(TYPE.import(object.py(), "collections.abc", "Set")?)
}

/// The digest of the parts as one sequence, without the GIL where all of them are arrays and there is enough to do.
pub fn digest_of(py: Python<'_>, parts: &[Tokens<'_, '_>]) -> PyResult<Hash> {
    let size = wire::encoded_len(Parts(parts).len()).unwrap_or(usize::MAX);
    match views(parts) {
        Some(views) if size > GIL_MIN_SIZE => {
            py.detach(|| digest(&Parts(&views))).map_err(|(part, found)| parts[part].negative(found))
        }
        _ => digest(&Parts(parts)).map_err(|(_, error)| error),
    }
}

/// True if the parts, as one sequence, stand in `whole` at position `at`.
pub fn stands_in(py: Python<'_>, whole: &Tokens<'_, '_>, at: usize, parts: &[Tokens<'_, '_>]) -> PyResult<bool> {
    match (whole.view(), views(parts)) {
        (Some(view), Some(views)) => py.detach(|| stands_at(view, at, &Parts(&views))).map_err(|side| match side {
            Side::Whole(found) => whole.negative(found),
            Side::Piece((part, found)) => parts[part].negative(found),
        }),
        _ => stands_at(whole, at, &Parts(parts)).map_err(|side| match side {
            Side::Whole(error) | Side::Piece((_, error)) => error,
        }),
    }
}

/// The views of the parts, if all of them are arrays.
pub fn views(parts: &[Tokens<'_, '_>]) -> Option<Vec<ArrayView>> {
    parts.iter().map(|part| part.view().cloned()).collect()
}
