"""What the digests of a staged call hash, and in which order: one object for each release of the format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from tokenrecords._core import staged_call_digest, staged_extras_digest, staged_ids, staged_ids_digest
from tokenrecords.tokens.arrays import as_list, id_array, join_arrays, log_prob_array, shown

# Lists, tuples and arrays are all taken, and no type says "integers, but not bytes".
Column: TypeAlias = Any

_HEX = re.compile(r"[0-9a-f]{64}")
_MODES = ("text", "token_in")


@dataclass(frozen=True)
class Layout:
    """Versions and domains of the staging digests, as nemo-gym defines them.

    A number is written as an unsigned 64-bit big-endian integer, a text as its length in bytes and its UTF-8.

    Attributes:
        schema_version: The version of a staged call's fields, 0 to 255; so the other two.
        digest_version: The version of `compute_staging_digest`.
        extras_digest_version: The version of `compute_extras_digest`.
        prefix_domain: What `hash_token_ids` hashes first, so that no other use of SHA-256 gives the same value.
        chain_domain: The same of `compute_chain_hash`.
        extras_domain: The same of `compute_extras_digest`.
        call_domain: The same of `compute_staging_digest`.
    """

    schema_version: int
    digest_version: int
    extras_digest_version: int
    prefix_domain: bytes
    chain_domain: bytes
    extras_domain: bytes
    call_domain: bytes

    def encode_token_ids(self, token_ids: Column) -> bytes:
        """Encode token ids: their number, then each.

        Args:
            token_ids: Ids from 0 to 2**64 - 1: a sequence of exact ints, or an integer array of shape `(n,)`.

        Returns:
            `8 + 8 * n` bytes.

        Raises:
            TypeError: `token_ids` is not a sequence, or an array of another dtype.
            ValueError: An element is not a token id.
        """
        return staged_ids(token_ids)

    def hash_token_ids(self, token_ids: Column) -> str:
        """The digest of a call's full sequence, as 64 hex digits.

        Args:
            token_ids: As `encode_token_ids` takes them.

        Raises:
            TypeError: As `encode_token_ids`.
            ValueError: As `encode_token_ids`.
        """
        return staged_ids_digest(self.prefix_domain, token_ids=token_ids)

    def compute_chain_hash(self, parent_chain_hash: str | None, token_ids_delta: Column) -> str:
        """The digest of a call's own ids and its parent's chain hash, as 64 hex digits.

        Args:
            parent_chain_hash: 64 lowercase hex digits; None for a root.
            token_ids_delta: What the call adds to its parent, as `encode_token_ids` takes it.

        Raises:
            TypeError: As `encode_token_ids`.
            ValueError: As `encode_token_ids`, or `parent_chain_hash` is not a digest.
        """
        parent = b"\0" if parent_chain_hash is None else b"\1" + _digest("parent_chain_hash", parent_chain_hash)
        return staged_ids_digest(self.chain_domain + parent, token_ids_delta=token_ids_delta)

    def compute_extras_digest(self, extras: Mapping[str, Any] | None) -> str:
        """The digest of what is staged beside the tokens, as 64 hex digits.

        Args:
            extras: A mapping of JSON-like values, or None. Keys may stand in any order.

        Raises:
            TypeError: A value whose type is not exactly None, bool, int, float, str, list or dict; another key.
            ValueError: An int beyond 64 bits, a float that is not finite, text that is not Unicode.
            RecursionError: Values more than 500 deep.
        """
        if extras is not None and not isinstance(extras, Mapping):
            raise TypeError(f"extras is {shown(extras)}: a mapping or None is needed, got {type(extras).__name__}")
        head = self.extras_domain + bytes([self.extras_digest_version])
        return staged_extras_digest(head, extras if extras is None or type(extras) is dict else dict(extras))

    def compute_staging_digest(
        self,
        *,
        schema_version: int,
        digest_version: int,
        extras_digest_version: int,
        rollout_id: str,
        model_call_id: str,
        parent_call_id: str | None,
        mode: str,
        prev_len: int,
        delta_len: int,
        cum_len: int,
        weight_version: int,
        token_ids_delta: Column,
        token_mask_delta: Column,
        generation_log_probs_delta: Column,
        extras_digest: str,
        chain_hash: str,
        cumulative_hash: str,
    ) -> str:
        """The digest that seals a staged call, as 64 hex digits.

        Args:
            schema_version: The layout's own; so the other two.
            digest_version: See `schema_version`.
            extras_digest_version: See `schema_version`.
            rollout_id: The training sample, not empty.
            model_call_id: The served call, not empty.
            parent_call_id: The call that this one continues; None for a root.
            mode: `text` for a root, `token_in` for a call with a parent.
            prev_len: The number of ids that come from the parent: 0 for a root, more for others.
            delta_len: The number of ids that this call adds, `n`, above 0.
            cum_len: `prev_len + delta_len`.
            weight_version: The version of the weights that generated, 0 to 2**64 - 1.
            token_ids_delta: The ids that this call adds, of shape `(n,)`, as `encode_token_ids` takes them.
            token_mask_delta: 1.0 for a generated id, else 0.0: exact floats or a float array, of shape `(n,)`.
            generation_log_probs_delta: Natural logs, 0.0 where the mask is; likewise.
            extras_digest: What `compute_extras_digest` gives.
            chain_hash: What `compute_chain_hash` gives.
            cumulative_hash: What `hash_token_ids` gives of the full sequence.

        Raises:
            TypeError: An id of a call that is not text, a hash that is not text, or a column that is not a sequence.
            ValueError: Another version, or a value that breaks what is said above.
        """
        self._check_versions(schema_version, digest_version, extras_digest_version)
        if not rollout_id or not model_call_id:
            raise ValueError(f"rollout_id is {rollout_id!r} and model_call_id {model_call_id!r}: neither may be empty")
        _check_place(parent_call_id, mode, prev_len)
        lengths = _number("prev_len", prev_len), _number("delta_len", delta_len), _number("cum_len", cum_len)
        if delta_len == 0 or cum_len != prev_len + delta_len:
            needed = "a delta of at least one token, and cum_len that is prev_len + delta_len, are needed"
            raise ValueError(f"prev_len is {prev_len}, delta_len {delta_len}, cum_len {cum_len}: {needed}")
        head = b"".join((
            self.call_domain,
            bytes((self.schema_version, self.digest_version, self.extras_digest_version)),
            _text("rollout_id", rollout_id),
            _text("model_call_id", model_call_id),
            b"\0" if parent_call_id is None else b"\1" + _text("parent_call_id", parent_call_id),
            _text("mode", mode),
            *lengths,
            _number("weight_version", weight_version),
        ))  # fmt: skip
        for name, value in (("chain_hash", chain_hash), ("cumulative_hash", cumulative_hash)):
            if not isinstance(value, str):
                raise TypeError(f"{name} is {shown(value)}: a text is needed, got {type(value).__name__}")
        tail = b"".join((
            _digest("extras_digest", extras_digest),
            b"\1" + _digest("chain_hash", chain_hash),
            b"\1" + _digest("cumulative_hash", cumulative_hash),
        ))  # fmt: skip
        return staged_call_digest(
            head,
            tail,
            delta_len,
            token_ids_delta=token_ids_delta,
            token_mask_delta=token_mask_delta,
            generation_log_probs_delta=generation_log_probs_delta,
        )

    def build_staging_delta(
        self, *, prompt_token_ids: Column, generated_token_ids: Column, generated_log_probs: Column, prev_len: int
    ) -> tuple[Column, Column, Column]:
        """The columns of a staged call: what the prompt has from `prev_len` on, then what was generated.

        Args:
            prompt_token_ids: The ids that the engine ran on, of shape `(p,)`.
            generated_token_ids: The ids that were sampled, of shape `(g,)`.
            generated_log_probs: Their natural logs, of shape `(g,)`.
            prev_len: How many ids of the prompt come from the parent.

        Returns:
            Ids, mask and log-probs, each of length `p - prev_len + g`: lists where all three are lists; else arrays,
            ids in the first dtype that holds them, mask and log-probs as float64 (float32 where the log-probs are).

        Raises:
            TypeError: Not sequences of ids and of log-probs.
            ValueError: `prev_len` lies outside the prompt, lengths differ, or nothing is left.
        """
        prompt, generated = len(prompt_token_ids), len(generated_token_ids)
        if not 0 <= prev_len <= prompt:
            raise ValueError(f"prev_len is {prev_len}: it is outside prompt length {prompt}")
        if generated != len(generated_log_probs):
            lengths = f"{generated} ids and {len(generated_log_probs)} log-probs"
            raise ValueError(f"generated_log_probs do not fit generated_token_ids: lengths differ, {lengths}")
        if prompt - prev_len + generated == 0:
            raise ValueError("the staging delta is empty: at least one token is needed")
        carried = prompt_token_ids[prev_len:]
        if all(isinstance(column, list) for column in (prompt_token_ids, generated_token_ids, generated_log_probs)):
            zeros = [0.0] * len(carried)
            return carried + generated_token_ids, zeros + [1.0] * generated, zeros + generated_log_probs
        log_probs = log_prob_array(generated_log_probs)
        dtype = np.float32 if log_probs.dtype.itemsize <= 4 else np.float64
        parts = id_array(carried), id_array(generated_token_ids)
        arrays = [part for part in parts if isinstance(part, np.ndarray)]
        joined = join_arrays(arrays) if len(arrays) == len(parts) else None
        mask, filled = np.zeros(len(carried) + generated, dtype), np.zeros(len(carried) + generated, dtype)
        mask[len(carried) :] = 1.0
        filled[len(carried) :] = log_probs
        return as_list(parts[0]) + as_list(parts[1]) if joined is None else joined, mask, filled

    def _check_versions(self, schema_version: Any, digest_version: Any, extras_digest_version: Any) -> None:
        for name, value, needed, what in (
            ("schema_version", schema_version, self.schema_version, "staging schema"),
            ("digest_version", digest_version, self.digest_version, "staging digest"),
            ("extras_digest_version", extras_digest_version, self.extras_digest_version, "extras digest"),
        ):
            if type(value) is not int or value != needed:
                raise ValueError(f"{name} is {shown(value)}: unsupported {what}, version {needed} is needed")


def _check_place(parent_call_id: Any, mode: Any, prev_len: Any) -> None:
    if mode not in _MODES:
        raise ValueError(f"mode is {shown(mode)}: text or token_in is needed")
    if parent_call_id == "":
        raise ValueError("parent_call_id is empty: None or the id of a call is needed")
    place = f"parent_call_id is {shown(parent_call_id)}, mode {mode}, prev_len {shown(prev_len)}"
    if parent_call_id is None:
        if mode != "text" or prev_len != 0:
            raise ValueError(f"{place}: a call without a parent is text and has prev_len 0")
    elif mode != "token_in" or not isinstance(prev_len, int) or prev_len <= 0:
        raise ValueError(f"{place}: a call with a parent is token_in and has prev_len above 0")


def _number(name: str, value: Any) -> bytes:
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ValueError(f"{name} is {shown(value)}: an int from 0 to 2**64 - 1 is needed, got {type(value).__name__}")
    return value.to_bytes(8, "big")


def _text(name: str, value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{name} is {shown(value)}: text is needed, got {type(value).__name__}")
    encoded = value.encode()
    return len(encoded).to_bytes(8, "big") + encoded


def _digest(name: str, value: Any) -> bytes:
    if not isinstance(value, str) or not _HEX.fullmatch(value):
        raise ValueError(f"{name} is {shown(value)}: 64 lowercase hex digits are needed")
    return bytes.fromhex(value)
