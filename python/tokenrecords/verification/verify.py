"""Proof of records: what is wrong with them, and which of them can be trusted."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from tokenrecords import _core
from tokenrecords.entry.model import as_entries
from tokenrecords.lineage.calls import Call, same_ids, starts_prompt
from tokenrecords.lineage.deltas import expand
from tokenrecords.verification.findings import Finding, Report, VerificationError
from tokenrecords.verification.record import Record, check_alone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tokenrecords.entry.assigned import Ids
    from tokenrecords.entry.model import TokenEntry

__all__ = ["Finding", "Report", "VerificationError", "verify"]


def verify(entries: Iterable[TokenEntry], *, vocab_size: int | None = None, threads: int | None = None) -> Report:
    """Check records, each on its own and against the records of its rollout.

    Bad data never raises: it is a finding. docs/findings.md says for each code what it means for training.

    Args:
        entries: Records of any number of rollouts, in any order, full or delta. They are not changed.
        vocab_size: Ids must be below it.
        threads: The most threads that hash; by default the CPUs that this process may use.

    Raises:
        ValueError: `vocab_size` or `threads` is below 1.
        TypeError: `entries` is one entry, a path or a mapping.

    >>> from tokenrecords import TokenEntry
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[0.5], parent_resolution="root", cum_len=3)
    >>> report = verify([entry])
    >>> report.ok, report.counts
    (False, {'log_prob_positive': 1, 'no_digest': 1})
    >>> print(report)
    1 record with 3 ids: 1 error, 1 info
    error log_prob_positive: call 'c' of rollout 'r': generation_log_probs[0] is 0.5: no log-prob is above 0.0001
    info no_digest: call 'c' of rollout 'r': no digest was recorded, so that its ids can't be proven
    """
    if vocab_size is not None and operator.index(vocab_size) < 1:
        raise ValueError(f"vocab_size is {vocab_size}: it must be at least 1")
    records = [Record(position, entry) for position, entry in enumerate(as_entries(entries))]
    for record in records:
        check_alone(record, vocab_size)
    calls = _Calls(records)
    calls.check_parents(threads)
    calls.check_digests(threads)
    keys = {record.key for record in records if record.key is not None}
    return Report(
        findings=[finding for record in records for finding in record.findings],
        sound=frozenset(keys - {record.key for record in records if record.has_error}),
        records=len(records),
        ids=sum(record.ids for record in records),
    )


class _Calls:
    """The records that can be compared with others; those of a call that agree with its first one."""

    def __init__(self, records: Iterable[Record]) -> None:
        self._records: dict[Call, Record] = {}
        self._first: dict[tuple[str, str], Call] = {}
        self._failed: dict[Call, str] = {}  # why a delta entry has no full prompt
        self._continued: dict[Call, Call] = {}  # a call whose prompt starts with all ids of the call
        records = list(records)
        self._keys = {record.key for record in records}
        for record in records:
            call = record.call()
            if call is not None and not self._is_conflict(call, record):
                self._records[call] = record

    def _is_conflict(self, call: Call, record: Record) -> bool:
        first = self._first.setdefault((call.entry.rollout_id, call.id), call)
        for name in ("prompt", "generation"):
            if not same_ids(getattr(first, name), getattr(call, name)):
                # Nothing else is said of a record that is not used.
                record.findings.clear()
                field = f"{name}_token_ids"
                record.find("call_id_conflict", f"an earlier record of this call has other {field}", field)
                return True
        return False

    def check_parents(self, threads: int | None) -> None:
        """Give delta entries their full prompts, and check that each call continues its parent."""
        self._expand(threads)
        self._name_parents()
        named = {call: call.parent for call in self._records if call.parent is not None}
        broken = {call: parent for call, parent in named.items() if not self._continues(call, parent)}
        for cycle in _cycles(self._records):
            others = "1 other" if len(cycle) == 2 else f"{len(cycle) - 1} others"
            # The links that hold are not the ones that close the cycle.
            for call in [call for call in cycle if call in broken] or cycle:
                self._records[call].find(
                    "parent_cycle", f"its parents lead back to it, over {others}", "parent_call_id"
                )
        for call, parent in broken.items():
            if call not in self._failed and not self._records[call].has("parent_cycle"):
                index, why = _first_difference(call, parent)
                self._records[call].find("parent_not_prefix", why, "prompt_token_ids", index)
        for call, why in self._failed.items():
            record = self._records[call]
            if not record.has("field_invalid", "id_negative", "parent_self", "parent_cycle"):
                record.find("delta_unreconstructable", why, "prompt_token_ids")

    def check_digests(self, threads: int | None) -> None:
        """Check length and digest of the whole sequences; the expansion has checked the digests of delta entries."""
        hashed = []
        for call, record in self._records.items():
            cum_len, digest = record.get("cum_len"), record.get("digest")
            if cum_len not in (None, call.length) and call not in self._failed:
                record.find("cum_len_mismatch", f"cum_len is {cum_len}, its sequence has {call.length} ids", "cum_len")
            if digest is None and not record.are_invalid("digest"):
                record.find("no_digest", "no digest was recorded, so that its ids can't be proven", "digest")
            elif digest is not None and not record.is_delta and not record.has("id_negative"):
                hashed.append(call)
        digests = _core.compute_digests(map(self._whole, hashed), threads=threads)
        for call, digest in zip(hashed, digests, strict=True):
            if digest != call.entry.digest:
                self._records[call].find(
                    "digest_mismatch", f"digest is {call.entry.digest!r}, its ids have {digest!r}", "digest"
                )

    def _expand(self, threads: int | None) -> None:
        calls = list(self._records)
        prompts, reasons = expand([call.entry for call in calls], threads=threads)
        for position, prompt in prompts.items():
            calls[position].prompt = prompt
        self._failed = {calls[position]: why for position, why in reasons.items()}

    def _name_parents(self) -> None:
        for call, record in self._records.items():
            named = record.named_parent
            if named == call.id:
                record.find("parent_self", "it continues itself", "parent_call_id")
            elif named is not None:
                call.parent = self._first.get((call.entry.rollout_id, named))
                is_there = (call.entry.rollout_id, named) in self._keys
                if not is_there and not record.is_delta:
                    record.find("parent_missing", f"parent call {named!r} is not there", "parent_call_id")

    def _continues(self, call: Call, parent: Call) -> bool:
        """False where the parent's ids are not what starts the prompt."""
        if call in self._failed:
            return False
        if parent in self._failed or self._records[parent].has("id_negative"):
            return True  # nobody knows, and what is wrong is said of the parent
        if not starts_prompt(parent, call):
            return False
        self._continued[parent] = call
        return True

    def _whole(self, call: Call) -> Ids:
        """The whole sequence; where another prompt starts with it, that piece of it, without a copy."""
        following = self._continued.get(call)
        return call.whole() if following is None else following.prompt[: call.length]


def _cycles(calls: Iterable[Call]) -> Iterator[list[Call]]:
    """The calls of each cycle of parents."""
    seen: set[Call] = set()
    for start in calls:
        path: dict[Call, int] = {}
        at: Call | None = start
        while at is not None and at not in seen:
            seen.add(at)
            path[at] = len(path)
            at = at.parent
        if at in path:
            yield list(path)[path[at] :]


def _first_difference(call: Call, parent: Call) -> tuple[int | None, str]:
    """Where the prompt leaves the sequence of the parent."""
    whole, prompt = parent.whole(), call.prompt
    common = min(len(whole), len(prompt))
    different = whole[:common] != prompt[:common]
    if different.any():
        index = int(np.argmax(different))
        return index, f"prompt_token_ids[{index}] is {prompt[index]}, parent call {parent.id!r} has {whole[index]}"
    return None, f"parent call {parent.id!r} has {len(whole)} ids, the prompt only {len(prompt)}"
