//! Everything that knows Python: the extension module `tokenrecords._core`.

#![allow(clippy::doc_markdown, reason = "the docs of Python functions are docstrings")]

mod array;
mod batch;
mod body;
mod digest;
mod errors;
mod exported;
mod fields;
mod items;
mod json;
mod machine;
mod members;
mod panics;
mod pending;
mod prefetch;
mod prefixes;
mod scanner;
mod signals;
mod small_int;
mod sse;
mod staging;
mod stretches;
mod tokens;

use pyo3::prelude::*;

/// The native half of `tokenrecords`. Its documentation stands in `_core.pyi`.
#[pymodule(gil_used = false)]
mod _core {
    use super::batch;
    use super::body;
    use super::digest::{digest_of, hex};
    use super::errors::Name;
    use super::exported;
    use super::items;
    use super::json;
    use super::machine::warn_of_kernel;
    use super::panics::make_runtime_errors;
    use super::prefixes::stands_in;
    use super::staging;
    use super::tokens::Tokens;
    use crate::source::{Parts, Source};
    use crate::wire;
    use numpy::{IntoPyArray, PyArray1, PyArray3, PyUntypedArray};
    use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
    use pyo3::prelude::*;
    use pyo3::types::{PyBytes, PyDict, PyList, PyString};

    #[pymodule_export]
    use super::body::IdWords;

    #[pymodule_export]
    use super::fields::{joined_ids, kept_ids, kept_log_probs};

    #[pymodule_export]
    use super::machine::machine;

    #[pymodule_export]
    use super::members::MemberCutter;

    #[pymodule_export]
    use super::pending::PendingDigests;

    #[pymodule_export]
    use super::prefixes::PrefixIndex;

    #[pymodule_export]
    use super::scanner::{RecordLine, RecordScanner};

    #[pymodule_export]
    use super::sse::{ChunkRules, SseEvents};

    #[pymodule_export]
    use super::stretches::copy_stretches;

    #[pymodule_export]
    const DIGEST_VERSION: u8 = wire::VERSION;

    #[pymodule_export]
    const DEBUG: bool = cfg!(debug_assertions);

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        make_runtime_errors(module.py())?;
        warn_of_kernel(module.py())?;
        module.add("DIGEST_DOMAIN", PyBytes::new(module.py(), &wire::DOMAIN))?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    /// Encode token ids in the wire format, digest version 1.
    ///
    /// One byte 1, the number of ids, then each id; number and ids as unsigned 64-bit big-endian integers.
    ///
    /// Args:
    ///     token_ids: The ids, 0 to 2**64 - 1: a list or tuple; a one-dimensional integer array of any dtype, byte
    ///         order and stride; anything with the buffer protocol, `__array__` or DLPack on the CPU; another sequence
    ///         of integers.
    ///
    /// Returns:
    ///     `9 + 8 * len(token_ids)` bytes.
    ///
    /// Raises:
    ///     TypeError: `token_ids` is not a sequence of integers (text, bytes, a set, a mapping, an iterator, a scalar, a
    ///         float, bool or masked array), or an element is not an integer.
    ///     ValueError: An id below 0 or above 2**64 - 1, or an array of other than one dimension.
    ///
    /// >>> encode_token_ids([1, 258]).hex(" ", 8)
    /// '01 0000000000000002 0000000000000001 0000000000000102'
    #[pyfunction]
    fn encode_token_ids<'py>(token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        let tokens = Tokens::new(Name::Argument("token_ids"), token_ids)?;
        let len = wire::encoded_len(tokens.len()).ok_or_else(|| PyOverflowError::new_err("too many token ids"))?;
        PyBytes::new_with(token_ids.py(), len, |out| tokens.encode(out))
    }

    /// Digest of a token sequence: SHA-256 in lowercase hex.
    ///
    /// Hashed are the 15 bytes `nemo-gym-tokens` and the encoding of `encode_token_ids`; for the empty sequence the
    /// 15 bytes alone.
    ///
    /// Args:
    ///     token_ids: The ids, of the kinds that `encode_token_ids` takes.
    ///
    /// Raises:
    ///     TypeError: As `encode_token_ids`.
    ///     ValueError: As `encode_token_ids`.
    ///
    /// >>> compute_digest([0])
    /// '0596efeb21b51ec6eb122c9e470703df19a095a7c5ccb96bf87df0ba2447ba59'
    #[pyfunction]
    fn compute_digest<'py>(token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        let tokens = Tokens::new(Name::Argument("token_ids"), token_ids)?;
        Ok(hex(token_ids.py(), &digest_of(token_ids.py(), &[tokens])?))
    }

    /// Digests of many token sequences: as a loop of `compute_digest`, several at once on each core.
    ///
    /// Args:
    ///     sequences: An iterable of token sequences, each of any kind that `encode_token_ids` takes; with `offsets` one
    ///         flat token sequence.
    ///     offsets: Where the sequences stand in the flat one, as in Arrow lists and `cu_seqlens`: n + 1 integers that do
    ///         not decrease; sequence i is `sequences[offsets[i]:offsets[i + 1]]`.
    ///     threads: The most threads to use; by default the CPUs that this process may use (affinity and cgroup quota)
    ///         as far as the work is worth it.
    ///
    /// Returns:
    ///     One digest for each sequence, in order.
    ///
    /// Raises:
    ///     TypeError: As `encode_token_ids`, with the place of the sequence: `sequences[7], token_ids[2] is 1.0: ...`.
    ///     ValueError: As `encode_token_ids`; `offsets` that decrease or lie beyond the ids; `threads` below 1.
    ///
    /// >>> compute_digests([[1, 2], range(3)]) == [compute_digest([1, 2]), compute_digest([0, 1, 2])]
    /// True
    /// >>> compute_digests([1, 2, 0, 1, 2], offsets=[0, 2, 5]) == compute_digests([[1, 2], [0, 1, 2]])
    /// True
    #[pyfunction]
    #[pyo3(signature = (sequences, *, offsets=None, threads=None))]
    fn compute_digests<'py>(
        sequences: &Bound<'py, PyAny>,
        offsets: Option<&Bound<'py, PyAny>>,
        threads: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyString>>> {
        let threads = batch::thread_count(threads)?;
        let hashes = match offsets {
            None => batch::of_iterable(sequences, threads)?,
            Some(offsets) => batch::of_pieces(sequences, offsets, threads)?,
        };
        Ok(hashes.iter().map(|hash| hex(sequences.py(), hash)).collect())
    }

    /// Digest of the first `length` ids of a sequence. Errors name it by its keyword.
    ///
    /// Raises:
    ///     ValueError: There are fewer; or as `compute_digest`.
    #[pyfunction]
    #[pyo3(signature = (length, /, **sequence))]
    fn prefix_digest<'py>(
        py: Python<'py>,
        length: usize,
        sequence: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyString>> {
        let names = names(sequence)?;
        let [(name, ids)] = names.as_slice() else {
            return Err(PyTypeError::new_err("prefix_digest takes one sequence"));
        };
        let tokens = Tokens::new(Name::Argument(name), ids)?;
        if length > tokens.len() {
            let message = format!("length is {length}, but {name} has {} ids", tokens.len());
            return Err(PyValueError::new_err(message));
        }
        Ok(hex(py, &digest_of(py, &[tokens.piece(py, 0, length)])?))
    }

    /// Length and digest of the parts as one sequence. Errors name a part by its keyword.
    #[pyfunction]
    #[pyo3(signature = (**parts))]
    fn joint_digest<'py>(
        py: Python<'py>,
        parts: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<(usize, Bound<'py, PyString>)> {
        let names = names(parts)?;
        let parts = tokens(&names)?;
        Ok((Parts(&parts).len(), hex(py, &digest_of(py, &parts)?)))
    }

    /// True if the later sequences, one after the other, stand in the first one at position `at`.
    ///
    /// Errors name a sequence by its keyword.
    #[pyfunction]
    #[pyo3(signature = (at, /, **sequences))]
    fn stands_at(py: Python<'_>, at: usize, sequences: Option<&Bound<'_, PyDict>>) -> PyResult<bool> {
        let names = names(sequences)?;
        match tokens(&names)?.split_first() {
            Some((whole, parts)) => stands_in(py, whole, at, parts),
            None => Err(PyTypeError::new_err("stands_at needs a sequence to look in")),
        }
    }

    /// A new list with the items of `value` if it is an exact list of exact ints, else None.
    #[pyfunction]
    fn copy_int_list<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
        items::copy_if_all_ints(value)
    }

    /// A new list with the items of `value` if it is an exact list of exact floats, else None.
    #[pyfunction]
    fn copy_float_list<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyList>> {
        items::copy_if_all_floats(value)
    }

    /// An array of the items of `value` if it is an exact list of exact ints between -2**30 and 2**30, else None.
    #[pyfunction]
    fn int32_array<'py>(value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyArray1<i32>>> {
        items::small_ints(value).map(|ids| ids.into_pyarray(value.py()))
    }

    /// The array that `value` is, or the zero-copy array over what it exports; None where it exports none.
    ///
    /// Raises:
    ///     TypeError: Packed bytes (other than `bytes` itself), a masked array, or an export that fails.
    #[pyfunction]
    fn array_over<'py>(value: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyUntypedArray>>> {
        exported::array_over(Name::Argument("the value"), value)
    }

    /// The arrays of a record's line and the rest of it, or None where only pydantic can say what the line is.
    ///
    /// Returns:
    ///     `(rest, (prompt_token_ids, generation_token_ids, generation_log_probs))`. In the rest, JSON text, `[]` stands
    ///     for each array. Ids are int32, int64 or uint64, the first that holds them; log-probs are float64, or float32 if
    ///     `narrow`. An array is None where the line lacks the field.
    #[pyfunction]
    fn scan_record<'py>(line: &Bound<'py, PyBytes>, narrow: bool) -> PyResult<Option<json::Scanned<'py>>> {
        let (py, line) = (line.py(), line.as_bytes());
        match narrow {
            true => json::scan::<f32>(py, line),
            false => json::scan::<f64>(py, line),
        }
    }

    /// What is large in the body of a served response, as arrays, and the rest of it.
    ///
    /// None where nothing is, or where only a full reader can say what the body is.
    ///
    /// Args:
    ///     body: JSON text.
    ///     least: What has fewer elements stays in the rest.
    ///
    /// Returns:
    ///     `(rest, found)`. `found` has `(path, mark, value)` of each: its keys and indices from the whole body on; the
    ///     integer that stands there in the rest, JSON text, and nowhere else. A value is one of these:
    ///
    ///     - an array of numbers under a key that speaks of tokens: int32, int64 or uint64, the first that holds them,
    ///       or float64 where one has a fraction or an exponent;
    ///     - `IdWords` for a list of words like "token_id:41" under such a key;
    ///     - a list of objects with a `logprob` each, as a dict of columns: `logprob` (float64; lacking where one is
    ///       null), `id` and `token_id` (int32) and `token` (`IdWords`) where all objects have them;
    ///     - a list of rows of log-prob, id, and text or null, as a tuple of columns: float64 (None where one is null),
    ///       int32, and None for each text.
    ///
    ///     Each has as many elements as are the least.
    ///
    /// Raises:
    ///     MemoryError: There is none for what the body holds.
    ///
    /// >>> rest, [(path, mark, ids)] = scan_body(b'{"a":[{"token_ids":[%s]}]}' % b",".join([b"7"] * 16), 16)
    /// >>> rest, path, mark, ids.dtype, len(ids)
    /// (b'{"a":[{"token_ids":4611686018400000000}]}', ('a', 0, 'token_ids'), 4611686018400000000, dtype('int32'), 16)
    #[pyfunction]
    fn scan_body<'py>(body: &Bound<'py, PyBytes>, least: usize) -> PyResult<Option<body::Scanned<'py>>> {
        body::scan(body.py(), body.as_bytes(), least)
    }

    /// A record's line, without its line break: keys sorted, no spaces, floats in shortest form.
    ///
    /// Args:
    ///     fields: JSON values as pydantic dumps them, and the three arrays as lists or arrays (log-probs as float64).
    ///
    /// Raises:
    ///     ValueError: A field that JSON can't hold or no reader takes back, by name.
    #[pyfunction]
    fn record_line<'py>(fields: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyBytes>> {
        json::line(fields)
    }

    /// Encode token ids as staged calls do: their number, then each, as unsigned 64-bit big-endian integers.
    ///
    /// Raises:
    ///     TypeError: As the records' `encode_token_ids` where `token_ids` is not a sequence.
    ///     ValueError: An element of a list that is not an exact int from 0 to 2**64 - 1; a negative one of an array.
    #[pyfunction]
    fn staged_ids<'py>(token_ids: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
        staging::encode(token_ids)
    }

    /// SHA-256, in lowercase hex, of `head` and the encoding of `staged_ids`. Errors name the ids by their keyword.
    ///
    /// Raises:
    ///     TypeError: As `staged_ids`.
    ///     ValueError: As `staged_ids`.
    #[pyfunction]
    #[pyo3(signature = (head, /, **sequence))]
    fn staged_ids_digest<'py>(
        py: Python<'py>,
        head: &[u8],
        sequence: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyString>> {
        let names = names(sequence)?;
        let [(name, ids)] = names.as_slice() else {
            return Err(PyTypeError::new_err("staged_ids_digest takes one sequence"));
        };
        Ok(hex(py, &staging::of_ids(head, Name::Argument(name), ids)?))
    }

    /// SHA-256, in lowercase hex, of `head`, the columns of a staged call, and `tail`.
    ///
    /// Each column stands behind the number of its bytes: the ids as `staged_ids` encodes them; mask and log-probs as
    /// their number, then each as float32, big-endian.
    ///
    /// Args:
    ///     head: The bytes before the columns.
    ///     tail: The bytes behind them.
    ///     delta_len: The length that each column must have.
    ///     token_ids_delta: Ids, as `staged_ids` takes them.
    ///     token_mask_delta: 0.0 and 1.0: a list or tuple of exact floats, a float array, or what exports one.
    ///     generation_log_probs_delta: Finite floats of float32's range, likewise; 0.0 where the mask is.
    ///
    /// Raises:
    ///     TypeError: A column is not a sequence, or an array of another dtype.
    ///     ValueError: A value that a column can't hold, or another length.
    #[pyfunction]
    #[pyo3(signature = (head, tail, delta_len, /, *, token_ids_delta, token_mask_delta, generation_log_probs_delta))]
    fn staged_call_digest<'py>(
        py: Python<'py>,
        head: &[u8],
        tail: &[u8],
        delta_len: usize,
        token_ids_delta: &Bound<'py, PyAny>,
        token_mask_delta: &Bound<'py, PyAny>,
        generation_log_probs_delta: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyString>> {
        let columns = [token_ids_delta, token_mask_delta, generation_log_probs_delta];
        Ok(hex(py, &staging::of_call(head, tail, delta_len, columns)?))
    }

    /// SHA-256, in lowercase hex, of `head` and the typed encoding of JSON-like `extras`.
    ///
    /// Raises:
    ///     TypeError: A value whose type is not exactly None, bool, int, float, str, list or dict, or a key that is not
    ///         a str.
    ///     ValueError: An int beyond 64 bits, a float that is not finite, a lone surrogate.
    ///     RecursionError: Values more than 500 deep.
    #[pyfunction]
    fn staged_extras_digest<'py>(head: &[u8], extras: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyString>> {
        Ok(hex(extras.py(), &staging::of_extras(head, extras)?))
    }

    /// An int32 array of shape `(rows, layers, k)` of nested lists of exact ints between -2**30 and 2**30, else None.
    #[pyfunction]
    fn staged_routes<'py>(values: &Bound<'py, PyAny>) -> Option<Bound<'py, PyArray3<i32>>> {
        staging::routes(values)
    }

    fn names<'py>(parts: Option<&Bound<'py, PyDict>>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
        parts.map_or_else(
            || Ok(Vec::new()),
            |parts| parts.iter().map(|(name, part)| Ok((name.extract()?, part))).collect(),
        )
    }

    fn tokens<'py, 'a>(parts: &'a [(String, Bound<'py, PyAny>)]) -> PyResult<Vec<Tokens<'py, 'a>>> {
        parts.iter().map(|(name, part)| Tokens::new(Name::Argument(name), part)).collect()
    }
}
