"""What `verify` checks of one record on its own."""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tokenrecords.entry.assigned import loss_mask_of, wrong_types
from tokenrecords.entry.model import (
    TOKEN_ENTRY_MIN_SCHEMA_VERSION,
    TOKEN_ENTRY_RECORD_SCHEMA_VERSION,
    TokenEntry,
    origin,
)
from tokenrecords.entry.resolution import ParentResolutionStatus, check_parent
from tokenrecords.lineage.call import Call
from tokenrecords.tokens.arrays import Fault, check_ids, id_array, log_prob_array, mask_array, shared_dtype, shown
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT, ROUTED_EXPERTS, TOKEN_FIELDS
from tokenrecords.tokens.routed_experts import shape_of_routes
from tokenrecords.verification.findings import Finding

if TYPE_CHECKING:
    from tokenrecords.tokens.arrays import IdArray, LogProbArray, MaskArray

MAX_LOG_PROB: Final = 1e-4  # rounding of a probability of 1 stays below it
SENTINEL: Final = -9999.0  # engines write it where they have no log-prob
MIN_ALL_ZERO: Final = 8  # as many generated ids of probability 1 do not happen by chance


class Record:
    """An entry as it is looked at: its fields as far as they can be read, and what was found.

    Attributes:
        entry: The entry, which may be anything.
        key: Rollout and call, None where they can't be read.
        prompt: Shape `(prompt,)`; None where it can't be read.
        generation: Shape `(generation,)`; None where it can't be read.
        log_probs: Shape `(generation,)`; None where they can't be read.
        loss_mask: Shape `(generation,)`; None where there is none, or none that can be read.
        route_rows: How many tokens there are routes for; None where nobody can say.
        findings: What was found.
    """

    def __init__(self, position: int, entry: Any) -> None:
        self.entry = entry
        self.key: tuple[str, str] | None = None
        self.prompt: IdArray | None = None
        self.generation: IdArray | None = None
        self.log_probs: LogProbArray | None = None
        self.loss_mask: MaskArray | None = None
        self.route_rows: int | None = None
        self.findings: list[Finding] = []
        self._position = position
        self._origin = origin(entry) if isinstance(entry, TokenEntry) else None
        self._invalid: set[str] = set()

    def get(self, name: str) -> Any:
        """A field, None where it is not there or of a wrong type."""
        return None if name in self._invalid else getattr(self.entry, name, None)

    def find(self, code: str, message: str, field: str | None = None, index: int | None = None) -> None:
        """Note a finding."""
        ids = [getattr(self.entry, name, None) for name in ("rollout_id", "model_call_id")]
        rollout_id, model_call_id = (id_ if isinstance(id_, str) else None for id_ in ids)
        path, line = self._origin or (None, None)
        self.findings.append(
            Finding(
                code,
                message,
                rollout_id=rollout_id,
                model_call_id=model_call_id,
                field=field,
                index=index,
                position=self._position,
                path=path,
                line=line,
            )
        )

    def find_invalid(self, name: str, message: str, index: int | None = None) -> None:
        """Note that a field can't be read."""
        self._invalid.add(name)
        self.find("field_invalid", message, name, index)

    def are_invalid(self, *names: str) -> bool:
        """True if one of these fields can't be read."""
        return not self._invalid.isdisjoint(names)

    def has(self, *codes: str) -> bool:
        """True if one of these was found."""
        return any(finding.code in codes for finding in self.findings)

    @property
    def has_error(self) -> bool:
        """True if one of the findings is an error."""
        return any(finding.severity == "error" for finding in self.findings)

    @property
    def ids(self) -> int:
        """The number of ids that can be read."""
        return sum(len(ids) for ids in (self.prompt, self.generation) if ids is not None)

    @property
    def is_delta(self) -> bool:
        """True if it says that its prompt is what follows its parent."""
        return bool(self.get("prompt_is_delta"))

    def call(self) -> Call | None:
        """The call, None where it can't be compared with others."""
        if (
            self.key is None
            or self.prompt is None
            or self.generation is None
            or shared_dtype((self.prompt, self.generation)) is None
            or self.are_invalid("parent_call_id", "prompt_is_delta", *(("digest",) if self.is_delta else ()))
        ):
            return None
        return Call(self.entry, self.prompt, self.generation)


def check_alone(record: Record, vocab_size: int | None) -> None:
    """Note everything that a record shows without others, but for its digest and length."""
    if not isinstance(record.entry, TokenEntry):
        record.find("field_invalid", f"it is a {type(record.entry).__name__}: a TokenEntry is needed")
        return
    _check_types(record)
    rollout_id, model_call_id = record.get("rollout_id"), record.get("model_call_id")
    if rollout_id is not None and model_call_id is not None:
        record.key = rollout_id, model_call_id
    record.prompt = _ids(record, PROMPT, vocab_size)
    record.generation = _ids(record, GENERATION, vocab_size)
    _check_mask(record)
    _check_log_probs(record)
    _check_items(record)
    _check_routes(record)
    _check_resolution(record)
    for name in record.entry.model_extra or ():
        field = _resembled(name)
        if field is not None:
            record.find("unknown_field", f"{name!r} is not a field of a record, but resembles {field}", name)


def _check_types(record: Record) -> None:
    for name, value in wrong_types(record.entry).items():
        record.find_invalid(name, f"{name} is {_typed(value)}")
    version = getattr(record.entry, "schema_version", None)
    newest = TOKEN_ENTRY_RECORD_SCHEMA_VERSION
    if not isinstance(version, int) or not TOKEN_ENTRY_MIN_SCHEMA_VERSION <= version <= newest:
        record.find_invalid("schema_version", f"schema_version is {_typed(version)}: up to {newest} can be read")
    status = record.get("parent_resolution")
    if status is not None and status not in list(ParentResolutionStatus):
        record.find_invalid("parent_resolution", f"parent_resolution is {_typed(status)}")


def _ids(record: Record, name: str, vocab_size: int | None) -> IdArray | None:
    try:
        ids = id_array(getattr(record.entry, name, None))
    except Fault as fault:
        record.find_invalid(name, fault.of(name), fault.index)
        return None
    if isinstance(ids, list):  # no dtype holds all of them: some are too large, or some negative beside 2**63
        for code, index in (
            ("id_outside_vocab", next((index for index, id_ in enumerate(ids) if id_ >= 1 << 64), None)),
            ("id_negative", next((index for index, id_ in enumerate(ids) if id_ < 0), None)),
        ):
            if index is not None:
                record.find(code, f"{name}[{index}] is {shown(ids[index])}", name, index)
        return None
    try:
        check_ids(ids)
    except Fault as fault:
        record.find("id_negative", f"{name}[{fault.index}] is {fault.shown}", name, fault.index)
    if vocab_size is not None and len(ids) and int(ids.max()) >= vocab_size:
        index = int(np.argmax(ids >= vocab_size))
        record.find("id_outside_vocab", f"{name}[{index}] is {ids[index]}: ids are below {vocab_size}", name, index)
    return ids


def _check_log_probs(record: Record) -> None:
    name = LOG_PROBS
    try:
        log_probs = log_prob_array(getattr(record.entry, name, None))
    except Fault as fault:
        record.find_invalid(name, fault.of(name), fault.index)
        return
    record.log_probs = log_probs
    if record.generation is not None and len(log_probs) != len(record.generation):
        generated = len(record.generation)
        record.find("length_mismatch", f"there are {generated} generated ids and {len(log_probs)} log-probs", name)
    if record.generation is not None and not len(record.generation):
        record.find("empty_generation", "it generated nothing", GENERATION)
    _check_values(record, log_probs)


def _check_values(record: Record, log_probs: LogProbArray) -> None:
    # Those of tokens that a tool wrote mean nothing.
    sampled = np.ones(len(log_probs), np.bool_)
    if record.loss_mask is not None and len(record.loss_mask) == len(log_probs):
        sampled = record.loss_mask
    scored = log_probs[sampled]
    if not len(scored):
        return
    least, most = float(scored.min()), float(scored.max())  # NaN where there is one
    if least == most == 0 and len(scored) >= MIN_ALL_ZERO:
        record.find("log_probs_all_zero", f"all {len(scored)} log-probs are 0.0", LOG_PROBS)
    if least > SENTINEL and most <= MAX_LOG_PROB:
        return
    values = log_probs.astype(np.float64)
    finite = np.isfinite(values)
    for code, bad, why in (
        ("log_prob_not_finite", ~finite, "it is not finite"),
        ("log_prob_positive", finite & (values > MAX_LOG_PROB), f"no log-prob is above {MAX_LOG_PROB}"),
        ("log_prob_sentinel", finite & (values <= SENTINEL), "it stands for a log-prob that the engine did not give"),
    ):
        count = np.count_nonzero(bad & sampled)
        if count:
            index = int(np.argmax(bad & sampled))
            more = f" ({count} of {len(values)} are like it)" if count > 1 else ""
            record.find(code, f"{LOG_PROBS}[{index}] is {log_probs[index]}: {why}{more}", LOG_PROBS, index)


def _check_mask(record: Record) -> None:
    mask = loss_mask_of(record.entry)
    if mask is None:
        return
    try:
        record.loss_mask = mask_array(mask)
    except Fault as fault:
        record.find("mask_invalid", fault.of(LOSS_MASK), LOSS_MASK, fault.index)
        return
    if record.generation is not None and len(record.loss_mask) != len(record.generation):
        message = f"{LOSS_MASK} has {len(record.loss_mask)} values, there are {len(record.generation)} generated ids"
        record.find("mask_invalid", message, LOSS_MASK)
        record.loss_mask = None


def _check_routes(record: Record) -> None:
    routes = getattr(record.entry, ROUTED_EXPERTS, None)
    if routes is None:
        return
    try:
        shape = shape_of_routes(routes)
    except ValueError as error:
        record.find("routes_unreadable", str(error), ROUTED_EXPERTS)
        return
    if shape is None:
        return  # an engine's own text, which only its shape and rows make readable
    if len(shape) != 3:
        message = f"routed_experts has shape {shape}: tokens x layers x top_k is needed"
        record.find("routes_unreadable", message, ROUTED_EXPERTS)
    else:
        record.route_rows = shape[0]


def check_route_rows(record: Record, tokens: int) -> None:
    """Note that the routes are not those of all tokens of the call; engines do not route the last sampled one."""
    rows = record.route_rows
    # Those of a delta record may be of what it adds.
    if rows is None or any(known - 1 <= rows <= known for known in (tokens, record.ids)):
        return
    message = f"routed_experts has rows for {rows} tokens: {tokens - 1} or {tokens} are needed"
    record.find("routes_incomplete", message, ROUTED_EXPERTS)


def _check_items(record: Record) -> None:
    index, items = record.get("token_item_index"), record.get("output_items")
    for place, item in enumerate(items or ()):
        held = [name for name in TOKEN_FIELDS if isinstance(item, Mapping) and item.get(name) is not None]
        if held:
            message = f"output_items[{place}] holds {', '.join(held)} once more"
            record.find("tokens_in_items", message, "output_items", place)
    if index is not None and items is not None and not 0 <= index < len(items):
        message = f"token_item_index is {shown(index)}, output_items has {len(items)} items"
        record.find("item_index_outside", message, "token_item_index")


def _check_resolution(record: Record) -> None:
    if record.are_invalid("parent_resolution", "parent_call_id", "prompt_is_delta"):
        return
    status, parent = record.get("parent_resolution"), record.get("parent_call_id")
    if record.is_delta and parent is None:
        return  # it can't be expanded, which says it all
    try:
        check_parent(status, parent, is_delta=record.is_delta)
    except ValueError as error:
        record.find("parent_contradiction", str(error), "parent_resolution")
        return
    if status is None and parent is None:
        record.find("no_resolution", "nobody decided which call it continues", "parent_resolution")
    elif status == ParentResolutionStatus.UNRESOLVED:
        why = record.get("parent_resolution_reason")
        record.find(
            "unresolved_parent",
            "it continues a call that was not captured" + (f": {why}" if isinstance(why, str) and why else ""),
            "parent_resolution",
        )


@functools.lru_cache(maxsize=1024)
def _resembled(name: str) -> str | None:
    """The field that an unknown name looks like."""
    plain = {field.replace("_", ""): field for field in TokenEntry.model_fields}
    close = difflib.get_close_matches("".join(filter(str.isalnum, name.lower())), plain, n=1, cutoff=0.8)
    return plain[close[0]] if close else None


def _typed(value: Any) -> str:
    """A value of a wrong type, with that type."""
    return f"{shown(value)}, {type(value).__name__}"
