//! What this machine computes with.

use std::ffi::CString;
use std::thread::available_parallelism;

use crate::{digest, json};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;

/// What this process computes with.
///
/// Returns:
///     The kernel of one digest and that of a batch, each with its number of lanes (`sha-ni-x1`: one), the instructions
///     that read and write ids in JSON, and the number of CPUs that the process may use (affinity and cgroup quota).
#[pyfunction]
pub fn machine(py: Python<'_>) -> (String, String, &'static str, usize) {
    let [one, batch] = py.detach(digest::kernels);
    (one.name(), batch.name(), json::instructions(), available_parallelism().map_or(1, usize::from))
}

/// Warns of a kernel that is asked for and can't be had.
pub fn warn_of_kernel(py: Python<'_>) -> PyResult<()> {
    let Some(why) = digest::unusable() else { return Ok(()) };
    let message = CString::new(format!("{why}; the fastest are used"))?;
    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &message, 1)
}
