"""A line of `capture`'s input: one served call, with what is known of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from pydantic_core import from_json

from tokenrecords.capture.entries import entries_from_response, said_time
from tokenrecords.capture.finished import entries_from_rollout, is_finished
from tokenrecords.engines.payload import first_row
from tokenrecords.engines.stream import is_stream, merge_stream, server_error
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.tokens.arrays import same
from tokenrecords.tokens.envelopes import is_envelope
from tokenrecords.tokens.names import ARRAY_FIELDS

if TYPE_CHECKING:
    from types import UnionType

    from tokenrecords.engines.body import Spliced
    from tokenrecords.entry.model import TokenEntry

_VERSION = "weight_version"
# Where a request says the ids of its prompt, if it was sent as ids.
_PROMPTS = ("input_ids", "prompt", "token_ids", "prompt_token_ids")


@dataclass(frozen=True)
class Reading:
    """How all responses are read; the arguments of `entries_from_response`."""

    dialect: str | None = None
    choices: Any = "calls"
    check_counts: bool = True
    now: float = field(default_factory=lambda: round(time.time(), 3))  # of calls that say no time: one for all

    def entries(self, row: Any, native: Spliced | None = None) -> list[TokenEntry]:
        """The records of a row, as arrays, with the parent that it names or as the root that it is.

        Args:
            row: The row.
            native: The same, where there are arrays in it: all of them must be read as tokens.

        Raises:
            ValueError: A field of the row is missing or wrong, or its response is.
            TypeError: As `entries_from_response`.
        """
        if not isinstance(row, dict):
            raise ValueError(f"an object is needed, got {type(row).__name__}")
        if is_finished(row):
            return _finished(row, native)
        response = _payload(_required(row, "response", dict | list | str))
        entries = entries_from_response(
            response if native is None else native._replace(payload=response),
            rollout_id=_required(row, "rollout_id", str),
            model_call_id=_required(row, "model_call_id", str),
            dialect=self.dialect,
            choices=self.choices,
            check_counts=self.check_counts,
            prompt_token_ids=prompts_of(row),
        )
        if not (isinstance(response, Mapping) and said_time(response)):
            began = said_time({"created_at": row.get("started_at")}) or self.now  # the order of the lines says nothing
            for entry in entries:
                entry.created_at = began
        if not entries:
            error = server_error(response) if isinstance(response, Mapping) else None
            why = "the response carries no token ids" if error is None else f"the server sent an error: {error}"
            raise ValueError(why)
        entries = [entry.as_arrays() for entry in entries]
        for entry in entries:
            _add_version(entry, row.get(_VERSION))
            if row.get("parent_call_id") is not None:
                entry.parent_call_id = _required(row, "parent_call_id", str)
            elif "parent_call_id" in row or _starts_a_conversation(row):
                entry.parent_resolution = ParentResolutionStatus.ROOT
        return entries


def _finished(row: dict[str, Any], native: Spliced | None) -> list[TokenEntry]:
    entries = entries_from_rollout(row)
    if native is not None and not native.all_are_of(getattr(entry, name) for entry in entries for name in ARRAY_FIELDS):
        raise ValueError("not all arrays of the row were read")
    if not entries:
        raise ValueError("the rollout carries no token ids")
    return [entry.as_arrays() for entry in entries]


def _payload(response: Any) -> Any:
    """The response, of a stream what its chunks join to."""
    if isinstance(response, str):
        try:
            whole = from_json(response)
        except ValueError:
            return merge_stream(response)
        response = whole if isinstance(whole, list) else [whole]
        return response[0] if len(response) == 1 and not is_stream(response) else _payload(response)
    return merge_stream(response) if isinstance(response, list) and is_stream(response) else response


def _add_version(entry: TokenEntry, version: Any) -> None:
    """Note the weights that the row names.

    Raises:
        ValueError: The response names others.
    """
    if version is None:
        return
    extra = entry.model_extra or {}
    said = extra.get(_VERSION)
    if said is not None and str(said) != str(version):
        raise ValueError(f"{_VERSION} is {version!r}, and that of the response is {said!r}")
    setattr(entry, _VERSION, version)


def prompts_of(row: dict[str, Any]) -> Any:
    """The ids that were sent; None where the row does not say them.

    Raises:
        ValueError: It says them in two ways.
    """
    request = row.get("request")
    places = {"prompt_token_ids": row.get("prompt_token_ids")}
    if isinstance(request, Mapping):
        places |= {f"request.{name}": request.get(name) for name in _PROMPTS if _are_ids(request.get(name))}
    found = [(place, first_row(ids)) for place, ids in places.items() if ids is not None]
    for place, ids in found[1:]:
        if not same(ids, found[0][1]):
            raise ValueError(f"{found[0][0]} and {place} disagree")
    return found[0][1] if found else None


def _are_ids(prompt: Any) -> bool:
    """True for a list of integers or of lists of them, or an envelope: a prompt may be text, or several texts."""
    if is_envelope(prompt):
        return True
    if isinstance(prompt, np.ndarray):
        return prompt.dtype.kind in "iu"
    if not isinstance(prompt, list) or not prompt:
        return False
    return all(isinstance(part, int | list | np.ndarray) or is_envelope(part) for part in prompt)


def _starts_a_conversation(row: dict[str, Any]) -> bool:
    """True for a request of messages of which the model wrote none."""
    request = row.get("request")
    messages = request.get("messages") if isinstance(request, Mapping) else None
    if not isinstance(messages, list) or not messages:
        return False
    return not any(isinstance(message, Mapping) and message.get("role") == "assistant" for message in messages)


def _required(row: dict[str, Any], name: str, kind: type | UnionType) -> Any:
    if name not in row:
        raise ValueError(f"{name} is missing")
    if not isinstance(row[name], kind):
        needed = getattr(kind, "__name__", str(kind))
        raise ValueError(f"{name} is {type(row[name]).__name__}, {needed} is needed")
    return row[name]
