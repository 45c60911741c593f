//! What exports an array: numpy's own arrays, the buffer protocol, `__array__` and `DLPack`.

use super::errors::{Name, because, no_stop, type_name};
use numpy::PyUntypedArray;
use pyo3::PyTypeInfo;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyByteArray, PyBytes, PyList, PyMemoryView, PyString, PyTuple, PyType};

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
pub fn exported<'py>(name: Name<'_>, object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
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

pub fn refuse_masked(name: Name<'_>, array: &Bound<'_, PyUntypedArray>) -> PyResult<()> {
    let py = array.py();
    if array.get_type().is(PyUntypedArray::type_object(py)) || !array.is_instance(masked_array(py)?)? {
        return Ok(());
    }
    Err(PyTypeError::new_err(format!(
        "{name} is a masked array: a masked position holds no value; use its .compressed() or .filled()"
    )))
}

pub fn packed(name: Name<'_>, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = type_name(object);
    PyTypeError::new_err(format!(
        "{name} is of type {kind}: bytes are not a token sequence (packed ids would be hashed as byte values); \
         give their dtype, as in numpy.frombuffer(data, dtype='<i4')"
    ))
}

/// True for buffers of plain bytes: `bytes`, `bytearray`, `mmap`, and memoryviews with one byte an element.
///
/// An `array.array` or a `ctypes` array says by its type that its bytes are small ints.
pub fn is_packed_bytes(object: &Bound<'_, PyAny>) -> PyResult<bool> {
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

/// Asked by a memoryview, because a `ctypes` array exports no strides, which `PyUntypedBuffer` takes for a fault.
fn has_buffer(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyMemoryView>() || PyMemoryView::from(object).is_ok()
}

fn masked_array(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static TYPE: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    TYPE.import(py, "numpy.ma", "MaskedArray")
}
