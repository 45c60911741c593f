//! Members that are cut out of JSON texts, for Python.

use std::borrow::Cow;

use super::json::unless_odd;
use crate::json::Members;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// Names of members that are cut out. Its documentation stands in `_core.pyi`.
#[pyclass(frozen, module = "tokenrecords._core")]
pub struct MemberCutter(pub(super) Members);

#[pymethods]
impl MemberCutter {
    #[new]
    fn new(members: &Bound<'_, PyDict>) -> PyResult<Self> {
        Ok(Self(of(members)?))
    }

    fn cut<'py>(&self, text: &Bound<'py, PyBytes>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        Ok(unless_odd(self.0.cut(text.as_bytes()))?.map(|rest| rest_of(text, rest)))
    }
}

/// The names, at each depth.
fn of(members: &Bound<'_, PyDict>) -> PyResult<Members> {
    let member = |(name, within): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let within = if within.is_none() { None } else { Some(of(within.cast()?)?) };
        Ok((name.extract::<String>()?.into_bytes(), within))
    };
    Ok(Members(members.iter().map(member).collect::<PyResult<_>>()?))
}

/// What is left of a text, which is itself where nothing was cut.
fn rest_of<'py>(text: &Bound<'py, PyBytes>, rest: Cow<'_, [u8]>) -> Bound<'py, PyBytes> {
    match rest {
        Cow::Borrowed(_) => text.clone(),
        Cow::Owned(rest) => PyBytes::new(text.py(), &rest),
    }
}
