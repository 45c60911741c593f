//! The digests of staged calls from Python: exact values only, as their format defines it.

use super::array::ArrayView;
use super::digest::GIL_MIN_SIZE;
use super::errors::{Name, shown, type_name};
use super::exported::array_over;
use super::items::{Items, float_at};
use super::signals::{Interruptible, Signals};
use super::tokens::Tokens;
use crate::digest::Hash;
use crate::digest::staging::{self, count};
use crate::source::{CHUNK, Source};
use numpy::{IntoPyArray, PyArray3, PyArrayDescrMethods, PyArrayMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::PyTypeInfo;
use pyo3::exceptions::{PyOverflowError, PyRecursionError, PyRuntimeError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySequence, PyString, PyTuple};
use sha2::{Digest, Sha256};
use std::fmt::Display;

/// Token ids of which a list holds exact ints alone: no bools, no numpy scalars, nothing with an `__index__`.
struct Exact<'py, 'a> {
    tokens: Tokens<'py, 'a>,
    name: Name<'a>,
}

impl<'py, 'a> Exact<'py, 'a> {
    fn new(name: Name<'a>, object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let tokens = match object.cast_exact::<PyTuple>() {
            Ok(tuple) => Tokens::new(name, tuple.to_list().as_any())?,
            Err(_) => Tokens::new(name, object)?,
        };
        Ok(Self { tokens, name })
    }

    /// The id at `index` of a list, where it is not an exact int of one digit.
    #[cold]
    fn item(&self, list: &Bound<'py, PyList>, index: usize) -> PyResult<u64> {
        let name = self.name;
        let item = list.item(index).ok_or_else(|| became_shorter(name))?;
        item.cast_exact::<PyInt>().ok().and_then(|int| int.extract().ok()).ok_or_else(|| {
            let (value, kind) = (shown(&item), type_name(&item));
            let needed = "an exact int from 0 to 2**64 - 1 is needed";
            PyValueError::new_err(format!("{name}[{index}] is {value}: {needed}, got {kind}"))
        })
    }
}

impl Source for Exact<'_, '_> {
    type Error = PyErr;

    fn len(&self) -> usize {
        self.tokens.len()
    }

    fn read(&self, at: usize, out: &mut [u64]) -> PyResult<()> {
        let Some(list) = self.tokens.list() else { return self.tokens.read(at, out) };
        for (index, id) in (at..).zip(out) {
            *id = match list.small_int(index) {
                Some(small) if small >= 0 => small.unsigned_abs(),
                _ => self.item(list, index)?,
            };
        }
        Ok(())
    }
}

/// The encoding of the ids.
pub fn encode<'py>(token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    let ids = Exact::new(Name::Argument("token_ids"), token_ids)?;
    let len = ids.len().checked_add(1).and_then(|words| words.checked_mul(8));
    let len = len.ok_or_else(|| PyOverflowError::new_err("too many token ids"))?;
    PyBytes::new_with(token_ids.py(), len, |mut out| {
        staging::encode(&ids, |piece| {
            let (now, later) = std::mem::take(&mut out).split_at_mut(piece.len());
            now.copy_from_slice(piece);
            out = later;
        })
    })
}

/// The digest of `head` and the ids.
pub fn of_ids(head: &[u8], name: Name<'_>, token_ids: &Bound<'_, PyAny>) -> PyResult<Hash> {
    hashed(token_ids.py(), &Exact::new(name, token_ids)?, &Ids { head })
}

/// The digest of `head`, the columns and `tail`.
pub fn of_call(head: &[u8], tail: &[u8], len: usize, columns: [&Bound<'_, PyAny>; 3]) -> PyResult<Hash> {
    let [ids, mask, log_probs] = columns;
    let py = ids.py();
    let ids = Exact::new(Name::Argument("token_ids_delta"), ids)?;
    of_length("token_ids_delta", ids.len(), len)?;
    let mask = floats("token_mask_delta", mask, |_, value| {
        (![0.0, 1.0].contains(&value)).then_some("a mask must contain only 0.0 or 1.0")
    })?;
    of_length("token_mask_delta", mask.len(), len)?;
    let log_probs = floats("generation_log_probs_delta", log_probs, |index, value| {
        (value != 0.0 && mask.get(index) == Some(&0.0)).then_some("0.0 is needed where the mask is 0.0")
    })?;
    of_length("generation_log_probs_delta", log_probs.len(), len)?;
    hashed(py, &ids, &Call { head, floats: [&mask, &log_probs], tail })
}

/// What is hashed around and behind ids of any source.
trait Around: Sync {
    fn digest<S: Source>(&self, ids: &S) -> Result<Hash, S::Error>;
}

struct Ids<'a> {
    head: &'a [u8],
}

impl Around for Ids<'_> {
    fn digest<S: Source>(&self, ids: &S) -> Result<Hash, S::Error> {
        staging::of_ids(self.head, ids)
    }
}

struct Call<'a> {
    head: &'a [u8],
    floats: [&'a [f32]; 2],
    tail: &'a [u8],
}

impl Around for Call<'_> {
    fn digest<S: Source>(&self, ids: &S) -> Result<Hash, S::Error> {
        staging::of_call(self.head, ids, self.floats, self.tail)
    }
}

/// The digest, without the GIL where the ids are an array and there is enough to do.
fn hashed(py: Python<'_>, ids: &Exact<'_, '_>, around: &impl Around) -> PyResult<Hash> {
    let signals = Signals::new();
    match ids.tokens.view() {
        Some(view) if 8 * view.len() > GIL_MIN_SIZE => py
            .detach(|| around.digest(&Interruptible { ids: view, signals: &signals }))
            .map_err(|error| error.map(|found| ids.tokens.negative(found))),
        _ => around.digest(&Interruptible { ids, signals: &signals }),
    }
    .map_err(|error| error.unwrap_or_else(|| signals.into_error()))
}

fn of_length(name: &str, found: usize, needed: usize) -> PyResult<()> {
    if found == needed {
        return Ok(());
    }
    Err(PyValueError::new_err(format!("{name} has {found} values: delta_len does not match, it is {needed}")))
}

/// A private copy of a column as float32; `judge` says what is wrong with a value, before it is rounded.
fn floats(
    name: &str,
    object: &Bound<'_, PyAny>,
    judge: impl Fn(usize, f64) -> Option<&'static str>,
) -> PyResult<Vec<f32>> {
    let py = object.py();
    let narrow = |index: usize, value: f64| {
        #[expect(clippy::cast_possible_truncation, reason = "the format has float32; what leaves its range is refused")]
        let narrowed = value as f32;
        let needed = match narrowed.is_finite() {
            true => judge(index, value),
            false => Some("a finite float that float32 can hold is needed"),
        };
        needed.map_or(Ok(narrowed), |needed| Err(Wrong { index, value, needed }))
    };
    let list = match array_over(Name::Argument(name), object)? {
        Some(array) if array.dtype().kind() == b'O' && array.ndim() == 1 => {
            array.call_method0(intern!(py, "tolist"))?.cast_into::<PyList>()?
        }
        Some(array) => return of_array(name, &array, narrow),
        None => sequence(name, object)?,
    };
    (0..list.len())
        .map(|index| match float_at(&list, index) {
            Some(float) => narrow(index, float).map_err(|wrong| wrong.of(name)),
            None => Err(not_a_float(name, &list, index)),
        })
        .collect()
}

#[cold]
fn not_a_float(name: &str, list: &Bound<'_, PyList>, index: usize) -> PyErr {
    let Some(item) = list.item(index) else { return became_shorter(name) };
    let (value, kind) = (shown(&item), type_name(&item));
    PyValueError::new_err(format!("{name}[{index}] is {value}: an exact finite float is needed, got {kind}"))
}

/// Without a GIL another thread may shorten a list.
fn became_shorter(name: impl Display) -> PyErr {
    PyRuntimeError::new_err(format!("{name} became shorter while it was read"))
}

/// A value that a column can't hold.
struct Wrong {
    index: usize,
    value: f64,
    needed: &'static str,
}

impl Wrong {
    fn of(&self, name: &str) -> PyErr {
        let Self { index, value, needed } = self;
        PyValueError::new_err(format!("{name}[{index}] is {value:?}: {needed}"))
    }
}

/// The items of any sequence but text and bytes, whose items are no floats.
fn sequence<'py>(name: &str, object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
    if let Ok(list) = object.cast_exact::<PyList>() {
        return Ok(list.clone());
    }
    let is_text = object.is_instance_of::<PyString>() || object.is_instance_of::<PyBytes>();
    if is_text || object.cast::<PySequence>().is_err() {
        let kind = type_name(object);
        return Err(PyTypeError::new_err(format!("{name} is of type {kind}: a sequence of floats is needed")));
    }
    Ok(PyList::type_object(object.py()).call1((object,))?.cast_into()?)
}

/// The elements of a float array, read once, by the bits of which they are made.
fn of_array(
    name: &str,
    array: &Bound<'_, PyUntypedArray>,
    narrow: impl Fn(usize, f64) -> Result<f32, Wrong>,
) -> PyResult<Vec<f32>> {
    let py = array.py();
    if array.ndim() != 1 {
        let message = format!("{name} has {} dimensions: one is needed", array.ndim());
        return Err(PyValueError::new_err(message));
    }
    let dtype = array.dtype();
    let array = match (dtype.kind(), dtype.itemsize()) {
        (b'f', 4 | 8) => array.clone(),
        (b'f', 2) => array.call_method1(intern!(py, "astype"), ("=f4",))?.cast_into()?,
        _ if array.is_empty() => return Ok(Vec::new()),
        _ => {
            let message = format!("{name} has dtype {dtype}: float16, float32 or float64 is needed");
            return Err(PyTypeError::new_err(message));
        }
    };
    let (order, size) = (char::from(array.dtype().byteorder()), array.dtype().itemsize());
    let bits = array.call_method1(intern!(py, "view"), (format!("{order}u{size}"),))?.cast_into()?;
    let bits = ArrayView::new(&bits).ok_or_else(|| PyTypeError::new_err(format!("{name} gives no bits")))?;
    let mut column = Vec::with_capacity(bits.len());
    let mut words = [0; CHUNK];
    for at in (0..bits.len()).step_by(CHUNK) {
        let words = &mut words[..CHUNK.min(bits.len() - at)];
        bits.read_words(at, words);
        for (index, &word) in (at..).zip(&*words) {
            let value = match u32::try_from(word) {
                Ok(word) if size == 4 => f64::from(f32::from_bits(word)),
                _ => f64::from_bits(word),
            };
            column.push(narrow(index, value).map_err(|wrong| wrong.of(name))?);
        }
    }
    Ok(column)
}

/// The array of shape `(rows, layers, k)` that nested lists of small ints are; None where they are anything else.
pub fn routes<'py>(values: &Bound<'py, PyAny>) -> Option<Bound<'py, PyArray3<i32>>> {
    let lists = |list: Bound<'py, PyList>| list.iter().map(|item| item.cast_into_exact::<PyList>().ok());
    let rows: Vec<_> = lists(values.cast_exact().ok()?.clone()).collect::<Option<_>>()?;
    let (layers, k) = (rows.first()?.len(), rows.first()?.get_item(0).ok()?.cast_exact::<PyList>().ok()?.len());
    if k == 0 {
        return None;
    }
    let mut flat = Vec::with_capacity(rows.len().checked_mul(layers)?.checked_mul(k)?.min(MOST_AT_ONCE));
    let shape = [rows.len(), layers, k];
    for row in rows {
        let before = flat.len();
        for layer in lists(row) {
            let layer = layer?;
            for index in 0..k {
                flat.push(i32::try_from(layer.small_int(index)?).ok()?);
            }
            if layer.len() != k {
                return None;
            }
        }
        if flat.len() - before != layers * k {
            return None;
        }
    }
    flat.into_pyarray(values.py()).reshape(shape).ok()
}

/// No more routes are made room for on the word of two lengths.
const MOST_AT_ONCE: usize = 1 << 24;

/// The most values around a value: the reference ends at fewer, and so does no sane record.
const MAX_DEPTH: usize = 500;

/// Encoded bytes that wait to be hashed; more of them are hashed at once.
const PENDING: usize = 4_096;

/// The digest of `head` and the typed encoding of `extras`.
pub fn of_extras(head: &[u8], extras: &Bound<'_, PyAny>) -> PyResult<Hash> {
    let mut typed = Typed { sha: Sha256::new_with_prefix(head), pending: Vec::with_capacity(2 * PENDING) };
    typed.value(extras, 0)?;
    typed.sha.update(&typed.pending);
    Ok(typed.sha.finalize().into())
}

/// Hashes values, each behind the letter of its type.
struct Typed {
    sha: Sha256,
    pending: Vec<u8>,
}

impl Typed {
    fn value(&mut self, value: &Bound<'_, PyAny>, depth: usize) -> PyResult<()> {
        if depth > MAX_DEPTH {
            return Err(PyRecursionError::new_err(format!("extras are more than {MAX_DEPTH} values deep")));
        }
        if self.pending.len() > PENDING {
            self.sha.update(&self.pending);
            self.pending.clear();
        }
        if let Ok(int) = value.cast_exact::<PyInt>() {
            let int: i64 = int.extract().map_err(|_| {
                PyValueError::new_err(format!("extras hold {}: a signed 64-bit int is needed", shown(value)))
            })?;
            self.tagged(b'I', int.to_be_bytes());
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            self.tagged(b'L', count(list.len()));
            self.list(list, depth + 1)?;
        } else if let Ok(float) = value.cast_exact::<PyFloat>() {
            let float = float.value();
            if !float.is_finite() {
                return Err(PyValueError::new_err(format!("extras hold {}: a finite float is needed", shown(value))));
            }
            self.tagged(b'F', float.to_be_bytes());
        } else if let Ok(text) = value.cast_exact::<PyString>() {
            self.pending.push(b'S');
            self.text(text.to_str()?);
        } else if let Ok(dict) = value.cast_exact::<PyDict>() {
            self.dict(dict, depth + 1)?;
        } else if let Ok(flag) = value.cast_exact::<PyBool>() {
            self.tagged(b'B', [u8::from(flag.is_true())]);
        } else if value.is_none() {
            self.pending.push(b'N');
        } else {
            let message = format!("extras hold {}: its type, {}, is unsupported", shown(value), type_name(value));
            return Err(PyTypeError::new_err(message));
        }
        Ok(())
    }

    /// The items of a list, without an object for each where they are small ints, as routes are.
    fn list(&mut self, list: &Bound<'_, PyList>, depth: usize) -> PyResult<()> {
        for index in 0..list.len() {
            match list.small_int(index) {
                Some(int) => self.tagged(b'I', int.to_be_bytes()),
                None => match list.item(index) {
                    Some(item) => self.value(&item, depth)?,
                    None => return Err(became_shorter("a list in extras")),
                },
            }
        }
        Ok(())
    }

    fn dict(&mut self, dict: &Bound<'_, PyDict>, depth: usize) -> PyResult<()> {
        // A list of its own, because another thread may change the dict.
        let items: Vec<(Bound<'_, PyAny>, Bound<'_, PyAny>)> = dict.items().extract()?;
        let mut members = Vec::with_capacity(items.len());
        for (key, value) in &items {
            let key = key.cast_exact::<PyString>().map_err(|_| {
                PyTypeError::new_err(format!("extras hold the key {}: string keys are needed", shown(key)))
            })?;
            members.push((key.to_str()?, value));
        }
        members.sort_unstable_by_key(|&(key, _)| key);
        self.tagged(b'D', count(members.len()));
        for (key, value) in members {
            self.text(key);
            self.value(value, depth)?;
        }
        Ok(())
    }

    fn text(&mut self, text: &str) {
        self.pending.extend(count(text.len()));
        self.pending.extend(text.as_bytes());
    }

    fn tagged<const N: usize>(&mut self, tag: u8, bytes: [u8; N]) {
        self.pending.push(tag);
        self.pending.extend(bytes);
    }
}
