"""Proof of records: what is wrong with them, and which of them can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenrecords.capture.served import call_files
from tokenrecords.files.sources import given_paths
from tokenrecords.verification.by_file import verify_files
from tokenrecords.verification.entries import verify_entries
from tokenrecords.verification.findings import Report

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.names import PathLike

__all__ = ["verify"]


def verify(
    entries: Iterable[TokenEntry] | PathLike | Iterable[PathLike],
    *,
    vocab_size: int | None = None,
    threads: int | None = None,
) -> Report:
    """Check records, each on its own and against the records of its rollout.

    Bad data never raises: it is a finding. docs/findings.md says for each code what it means for training.

    Args:
        entries: Records of any number of rollouts, in any order, full or delta. They are not changed. Or a path, a
            directory or several paths, as the command takes them: the records of each file are checked against each
            other, and against the side files of their rollout.
        vocab_size: Ids must be below it.
        threads: The most threads that read and hash; by default the CPUs that this process may use.

    Raises:
        ValueError: `vocab_size` or `threads` is below 1.
        TypeError: `entries` is one entry or a mapping.
        FileNotFoundError: There is no such file, or a directory has none of records and no rollout that lost some.

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
    paths, given = given_paths(entries)
    if paths:
        found = verify_files(*call_files(paths), vocab_size=vocab_size, threads=threads)
        return Report.merged(report for *_, report in found)
    return verify_entries(given, vocab_size=vocab_size, threads=threads)
