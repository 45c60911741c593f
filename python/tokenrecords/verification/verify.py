"""Proof of records: what is wrong with them, and which of them can be trusted."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from tokenrecords.entry.entries import as_entries
from tokenrecords.verification.calls import check_calls
from tokenrecords.verification.findings import Report
from tokenrecords.verification.record import Record, check_alone

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.entry.model import TokenEntry

__all__ = ["verify"]


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
    check_calls(records, threads)
    keys = {record.key for record in records if record.key is not None}
    return Report(
        findings=[finding for record in records for finding in record.findings],
        sound=frozenset(keys - {record.key for record in records if record.has_error}),
        records=len(records),
        ids=sum(record.ids for record in records),
    )
