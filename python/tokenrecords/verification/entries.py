"""What is wrong with records that are at hand."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from tokenrecords.verification.calls import check_calls
from tokenrecords.verification.findings import Report
from tokenrecords.verification.record import Record, check_alone

if TYPE_CHECKING:
    from collections.abc import Iterable


def verify_entries(entries: Iterable[Any], *, vocab_size: int | None, threads: int | None) -> Report:
    """The arguments and errors of `verify`."""
    if vocab_size is not None and operator.index(vocab_size) < 1:
        raise ValueError(f"vocab_size is {vocab_size}: it must be at least 1")
    records = [Record(position, entry) for position, entry in enumerate(entries)]
    for record in records:
        check_alone(record, vocab_size)
    check_calls(records, threads)
    keys = {record.key for record in records if record.key is not None}
    return Report(
        findings=[finding for record in records for finding in record.findings],
        sound=frozenset(keys - {record.key for record in records if record.has_error}),
        records=len(records),
        ids=sum(record.ids for record in records),
    )
