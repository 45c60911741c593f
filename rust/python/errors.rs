//! Exceptions that name the argument, the position and the value.

use pyo3::exceptions::{PyStopIteration, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use std::fmt;

/// What an error calls a sequence of token ids.
#[derive(Clone, Copy)]
pub enum Name<'a> {
    /// A parameter or a field.
    Argument(&'a str),
    /// The sequence at this place of the parameter `sequences`.
    Sequence(usize),
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => f.write_str(name),
            Self::Sequence(place) => write!(f, "sequences[{place}], token_ids"),
        }
    }
}

/// More characters of a value than this help nobody.
const SHOWN: usize = 80;

/// The value as a message shows it: its `repr`, shortened; by its type where it has none.
pub fn shown(value: &Bound<'_, PyAny>) -> String {
    let Ok(text) = value.repr().and_then(|repr| Ok(repr.to_cow()?.into_owned())) else {
        // An int of more than 4,300 digits refuses to become text (sys.set_int_max_str_digits).
        return match value.cast::<PyInt>().ok().and_then(|int| int.call_method0("bit_length").ok()) {
            Some(bits) => format!("an int of {bits} bits"),
            None => format!("<{}>", type_name(value)),
        };
    };
    if text.chars().count() <= SHOWN {
        return text;
    }
    let mut short: String = text.chars().take(SHOWN - 3).collect();
    short.push_str("...");
    short
}

/// The name of the type of `value`.
pub fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}

/// The error, or a `TypeError` because of it where it would end a loop without a word.
///
/// A `StopIteration` from an object's own `__index__`, `__array__` or `__iter__` would silently end a caller's `map` or
/// generator, and a `Future` can't hold one.
pub fn no_stop(py: Python<'_>, error: PyErr, what: impl fmt::Display) -> PyErr {
    if !error.is_instance_of::<PyStopIteration>(py) {
        return error;
    }
    because(py, PyTypeError::new_err(format!("{what}: StopIteration was raised while it was read")), error)
}

/// The error with `cause` as its `__cause__`.
pub fn because(py: Python<'_>, error: PyErr, cause: PyErr) -> PyErr {
    error.set_cause(py, Some(cause));
    error
}

/// The error for an id below zero.
pub fn negative(name: Name<'_>, index: usize, value: impl fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{name}[{index}] is {value}: token ids must be non-negative, got {value}"))
}

/// The error for an id of 2**64 or more.
pub fn too_large(name: Name<'_>, index: usize, value: &Bound<'_, PyAny>) -> PyErr {
    let value = shown(value);
    PyValueError::new_err(format!("{name}[{index}] is {value}: token ids must be below 2**64, got {value}"))
}

/// The error for an element that is not an integer.
pub fn not_an_integer(name: Name<'_>, index: usize, value: &Bound<'_, PyAny>) -> PyErr {
    let (value, kind) = (shown(value), type_name(value));
    PyTypeError::new_err(format!("{name}[{index}] is {value}: token ids must be integers, got {kind}"))
}
