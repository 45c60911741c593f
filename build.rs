//! Passes the Python version on as `cfg` flags (`Py_3_12`, `Py_GIL_DISABLED`), which choose how small ints are read.

fn main() {
    #[cfg(feature = "python")]
    pyo3_build_config::use_pyo3_cfgs();
}
