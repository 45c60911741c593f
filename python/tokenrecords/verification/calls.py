"""What `verify` checks of a record against the others of its rollout."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from tokenrecords._core import compute_digests
from tokenrecords.lineage.breaks import Breaks
from tokenrecords.lineage.call import cycles
from tokenrecords.lineage.calls import distinct, link_named
from tokenrecords.lineage.deltas import missing
from tokenrecords.tokens.arrays import shown
from tokenrecords.tokens.names import PROMPT
from tokenrecords.verification.record import check_route_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tokenrecords.lineage.call import Call
    from tokenrecords.verification.record import Record

# What says already why a delta record has no full prompt.
_REASONS = ("id_negative", "parent_self", "parent_cycle")


def check_calls(records: Sequence[Record], threads: int | None) -> None:
    """Note what is wrong with records beside others: calls recorded twice, parents, lengths and digests."""
    found = {call: record for record in records if (call := record.call()) is not None}
    calls, conflicts = distinct(found)
    for call, _, field in conflicts:
        record = found.pop(call)
        record.findings.clear()  # nothing else is said of a record that is not used
        record.find("call_id_conflict", f"an earlier record of this call has other {field}", field)
    kept = {call: found[call] for call in calls}
    link_named(calls, threads=threads)
    _check_parents(kept, {record.key for record in records})
    _check_breaks(kept, threads)
    _check_digests(kept, threads)
    for call, record in kept.items():
        if not call.fault:
            check_route_rows(record, call.length)


def _check_parents(records: Mapping[Call, Record], keys: set[tuple[str, str] | None]) -> None:
    broken: list[tuple[Call, Call]] = []
    for call, record in records.items():
        if call.named_id == call.id:
            record.find("parent_self", "it continues itself", "parent_call_id")
        elif call.named is not None:
            if call.fault or not _may_continue(call, call.named, records):
                broken.append((call, call.named))
        elif call.named_id is not None and not record.is_delta and (call.entry.rollout_id, call.named_id) not in keys:
            record.find("parent_missing", f"parent call {call.named_id!r} is not there", "parent_call_id")
    _check_cycles(records, {call for call, _ in broken})
    for call, parent in broken:
        if not call.fault and not records[call].has("parent_cycle"):
            index, why = _first_difference(call, parent)
            records[call].find("parent_not_prefix", why, PROMPT, index)
    readable = {call.key for call in records}
    unreadable = {
        (key[0], missing(key[1])): f"parent call {key[1]!r} can't be read"
        for key in keys
        if key is not None and key not in readable
    }
    for call, record in records.items():
        if call.fault and not record.has(*_REASONS):
            why = unreadable.get((call.entry.rollout_id, call.fault), call.fault)
            record.find("delta_unreconstructable", why, PROMPT)


def _may_continue(call: Call, parent: Call, records: Mapping[Call, Record]) -> bool:
    """True if the parent's ids start the prompt, or nobody knows: what is wrong is said of the parent then."""
    return call.parent is not None or bool(parent.fault) or records[parent].has("id_negative")


def _check_cycles(records: Mapping[Call, Record], broken: set[Call]) -> None:
    for cycle in cycles(records):
        if len(cycle) > 1:
            others = "1 other" if len(cycle) == 2 else f"{len(cycle) - 1} others"
            # The links that hold are not the ones that close the cycle.
            for call in [call for call in cycle if call in broken] or cycle:
                records[call].find("parent_cycle", f"its parents lead back to it, over {others}", "parent_call_id")


def _check_breaks(records: Mapping[Call, Record], threads: int | None) -> None:
    """Say of each unresolved call where its prompt leaves an earlier call that it holds the prompt of."""
    known: dict[str, list[Call]] = defaultdict(list)
    lost: dict[str, list[Call]] = defaultdict(list)
    for call, record in records.items():
        if not call.fault:
            known[call.entry.rollout_id].append(call)
            if record.has("unresolved_parent"):
                lost[call.entry.rollout_id].append(call)
    for rollout_id, calls in lost.items():
        breaks = Breaks(known[rollout_id], threads=threads)
        for call in calls:
            broken = breaks.nearest(call)
            if broken is not None:
                message = (
                    f"{PROMPT}[{broken.index}] is {broken.found}, where call {broken.call.id!r}, "
                    f"whose prompt it starts with, generated {broken.generated}"
                )
                records[call].find("prefix_broken", message, PROMPT, broken.index)


def _first_difference(call: Call, parent: Call) -> tuple[int | None, str]:
    """Where the prompt leaves the sequence of the parent."""
    whole, prompt = parent.joined(), call.prompt
    common = min(len(whole), len(prompt))
    different = whole[:common] != prompt[:common]
    if different.any():
        index = int(np.argmax(different))
        return index, f"{PROMPT}[{index}] is {prompt[index]}, parent call {parent.id!r} has {whole[index]}"
    return None, f"parent call {parent.id!r} has {len(whole)} ids, the prompt only {len(prompt)}"


def _check_digests(records: Mapping[Call, Record], threads: int | None) -> None:
    """Check length and digest of the whole sequences; the expansion has checked the digests of delta entries."""
    hashed = []
    for call, record in records.items():
        cum_len, digest = record.get("cum_len"), record.get("digest")
        if cum_len not in (None, call.length) and not call.fault:
            record.find(
                "cum_len_mismatch", f"cum_len is {shown(cum_len)}, its sequence has {call.length} ids", "cum_len"
            )
        if digest is None and not record.are_invalid("digest"):
            record.find("no_digest", "no digest was recorded, so that its ids can't be proven", "digest")
        elif digest is not None and not record.is_delta and not record.has("id_negative"):
            hashed.append(call)
    digests = compute_digests((call.whole() for call in hashed), threads=threads)
    for call, digest in zip(hashed, digests, strict=True):
        if digest != call.entry.digest:
            message = f"digest is {call.entry.digest!r}, its ids have {digest!r}"
            records[call].find("digest_mismatch", message, "digest")
