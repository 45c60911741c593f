//! Any Python object that holds token ids, as a source.

use super::array::ArrayView;
use super::errors::{self, Name, no_stop, shown, type_name};
use super::exported::{exported, is_packed_bytes, packed, refuse_masked};
use super::items;
use crate::dtype::Negative;
use crate::sha256::with_vectors;
use crate::source::Source;
use crate::wire;
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyList, PyMapping, PySequence, PyString, PyTuple, PyType};

/// A sequence of token ids from Python, under the name that error messages give it.
pub struct Tokens<'py, 'a> {
    name: Name<'a>,
    ids: Ids<'py>,
}

/// What holds the ids.
enum Ids<'py> {
    Array(ArrayView),
    /// The list and its length at first. It may change while an item's `__index__` runs; what was said of it must not.
    List(Bound<'py, PyList>, usize),
    Tuple(Bound<'py, PyTuple>),
}

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
    pub fn piece(&self, py: Python<'_>, start: usize, end: usize) -> Self {
        let ids = match &self.ids {
            Ids::Array(view) => Ids::Array(view.piece(py, start, end)),
            Ids::List(list, _) => Ids::from_items(list.get_slice(start, end)),
            Ids::Tuple(tuple) => Ids::Tuple(tuple.get_slice(start, end)),
        };
        Self { name: self.name, ids }
    }

    /// The same ids under another name.
    pub fn named(self, name: Name<'a>) -> Self {
        Self { name, ..self }
    }

    /// The view, where the ids stand in the memory of an array.
    pub fn view(&self) -> Option<&ArrayView> {
        match &self.ids {
            Ids::Array(view) => Some(view),
            _ => None,
        }
    }

    /// The view, where the ids stand in the memory of an array; else the tokens as they were.
    pub fn into_view(self) -> Result<ArrayView, Self> {
        match self.ids {
            Ids::Array(view) => Ok(view),
            _ => Err(self),
        }
    }

    /// Writes the encoding to `out`, of the right length.
    pub fn encode(&self, out: &mut [u8]) -> PyResult<()> {
        match self.view() {
            Some(view) => with_vectors(
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
            Ids::Array(view) => view.len(),
            Ids::List(_, len) => *len,
            Ids::Tuple(tuple) => tuple.len(),
        }
    }

    fn read(&self, at: usize, out: &mut [u64]) -> PyResult<()> {
        match &self.ids {
            Ids::Array(view) => view.read(at, out).map_err(|found| self.negative(found)),
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
            return Ok(Self::Array(view));
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

/// An error for what has a length and items but is not a sequence of token ids.
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

fn not_a_sequence(name: Name<'_>, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = type_name(object);
    PyTypeError::new_err(match object.is_none() {
        true => format!("{name} is None: a sequence of token ids is needed"),
        false => format!("{name} is {}: a sequence of token ids is needed, got {kind}", shown(object)),
    })
}

/// True for what has `__len__` and `__getitem__` without saying that it is a sequence.
fn is_sized_and_indexed(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = object.get_type();
    Ok(kind.hasattr(intern!(object.py(), "__len__"))? && kind.hasattr(intern!(object.py(), "__getitem__"))?)
}

/// True for sets of any kind, and the views of a dict.
pub fn is_set(object: &Bound<'_, PyAny>) -> PyResult<bool> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    object.is_instance(TYPE.import(object.py(), "collections.abc", "Set")?)
}

/// The views of the parts, if all of them are arrays.
pub fn views<'a>(parts: &'a [Tokens<'_, '_>]) -> Option<Vec<&'a ArrayView>> {
    parts.iter().map(Tokens::view).collect()
}
