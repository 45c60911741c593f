//! What a panic is in Python. It is a mistake of ours, so it must be seen, but not by the end of a whole server.

use pyo3::exceptions::PyRuntimeError;
use pyo3::panic::PanicException;
use pyo3::prelude::*;

/// Makes a panic a `RuntimeError` that says that it is a bug, from whatever function, method or property it comes.
///
/// `PyO3` catches panics at every entry and raises its own exception for them. Each extension has one of its own. It is
/// derived from `BaseException`, which `except Exception` lets through.
pub fn make_runtime_errors(py: Python<'_>) -> PyResult<()> {
    let panic = py.get_type::<PanicException>();
    panic.setattr("__bases__", (py.get_type::<PyRuntimeError>(),))?;
    let text = c"lambda panic: f'a bug in tokenrecords, please report it: {RuntimeError.__str__(panic)}'";
    panic.setattr("__str__", py.eval(text, None, None)?)
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;

    use super::*;
    use pyo3::types::PyDict;

    #[pyfunction]
    fn index(items: &[u8], at: usize) -> u8 {
        items[at]
    }

    #[pyclass]
    struct Faulty(&'static str);

    #[pymethods]
    impl Faulty {
        #[getter]
        fn field(&self) -> u8 {
            panic!("a field of {}", self.0)
        }

        fn __len__(&self) -> usize {
            panic!("a length of {}", self.0)
        }
    }

    /// What Python code catches of each; a `PanicException` that comes back to Rust is a panic again.
    const CAUGHT: &CStr = c"
caught = []
for call in (lambda: index(b'1', 1), lambda: faulty.field, lambda: len(faulty)):
    try:
        call()
    except Exception as error:
        caught.append((isinstance(error, RuntimeError), str(error)))
    except BaseException as error:
        caught.append((False, str(error)))
";

    #[test]
    fn a_panic_is_a_runtime_error_that_says_that_it_is_a_bug() {
        let whats = ["index out of bounds: the len is 1 but the index is 1", "a field of ours", "a length of ours"];
        Python::initialize();
        Python::attach(|py| {
            let names = PyDict::new(py);
            names.set_item("index", wrap_pyfunction!(index, py).unwrap()).unwrap();
            names.set_item("faulty", Bound::new(py, Faulty("ours")).unwrap()).unwrap();
            let caught = || -> Vec<(bool, String)> {
                py.run(CAUGHT, Some(&names), None).unwrap();
                names.get_item("caught").unwrap().unwrap().extract().unwrap()
            };
            assert_eq!(caught(), whats.map(|what| (false, what.to_owned())));
            make_runtime_errors(py).unwrap();
            assert_eq!(caught(), whats.map(|what| (true, format!("a bug in tokenrecords, please report it: {what}"))));
        });
    }
}
