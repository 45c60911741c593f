"""Writes the page of rollouts."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from tokenrecords.files.durable import whole_file
from tokenrecords.report.overview import Overview
from tokenrecords.report.page import Embedded, Page
from tokenrecords.report.pieces import Pieces, find_tokenizer
from tokenrecords.report.reading import Reading
from tokenrecords.report.rollout import Rollout, details_of, row_of, used_ids
from tokenrecords.training.rollouts import Terminals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.files.names import PathLike
    from tokenrecords.verification.findings import Finding

__all__ = ["Written", "write_report"]

Only = Literal["findings", "untrainable"]
ONLY: Final = ("findings", "untrainable")


class Written(NamedTuple):
    """What a page has.

    Attributes:
        rollouts: Rollouts that are counted.
        shown: Those whose tokens are on the page.
    """

    rollouts: int
    shown: int


def write_report(
    entries: Iterable[TokenEntry] | PathLike | Iterable[PathLike],
    path: PathLike,
    *,
    tokenizer: PathLike | None = None,
    max_rollouts: int | None = 200,
    only: Only | None = None,
    terminal_call_ids: Mapping[str, str] | None = None,
    terminal_response_ids: Mapping[str, str] | None = None,
    threads: int | None = None,
) -> Written:
    """Write records as one HTML page that needs nothing else: an overview, and each rollout token by token.

    The file is written whole, or stays as it is.

    Args:
        entries: Records of any number of rollouts, in any order, full or delta; or a path, a directory or several
            paths, as `verify` takes them.
        path: The page; its name ends with `.html`.
        tokenizer: A `tokenizer.json`, a folder that holds one, or the name of one in the local cache of Hugging Face;
            without it ids are shown.
        max_rollouts: The most rollouts whose tokens are on the page, the first ones; all are counted. None sets no
            limit.
        only: "findings" for rollouts with an error or a warning, "untrainable" for those that are not trainable.
        terminal_call_ids: The call that each rollout ended with, by rollout id, as `build_rollouts` takes it.
        terminal_response_ids: The `response_id` of that call, in the same way.
        threads: The most threads that read and hash; by default the CPUs that this process may use.

    Raises:
        FileNotFoundError: There is no such file or tokenizer.
        TypeError: One of `entries` is none, or the terminals are not mappings.
        ValueError: `path` does not end with `.html`, `max_rollouts` or `threads` is below 1, `only` is unknown, or
            `tokenizer` is not one.

    >>> from tokenrecords import TokenEntry
    >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
    ...                    generation_log_probs=[-0.5], parent_resolution="root")
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_report([entry], f"{folder}/report.html")
    Written(rollouts=1, shown=1)
    """
    options = Options(path, tokenizer, max_rollouts, only, Terminals.given(terminal_call_ids, terminal_response_ids))
    options.check()
    return write_page(Reading.of(entries, threads=threads), options, threads=threads)


class Options(NamedTuple):
    """The arguments of `write_report` of these names."""

    path: PathLike
    tokenizer: PathLike | None
    max_rollouts: int | None
    only: Only | None
    terminals: Terminals = Terminals({}, {})

    def check(self) -> None:
        """Raise what `write_report` raises of them."""
        if not os.fspath(self.path).endswith(".html"):
            raise ValueError(f"path is {os.fspath(self.path)}: a name that ends with .html is needed")
        if self.max_rollouts is not None and self.max_rollouts < 1:
            raise ValueError(f"max_rollouts is {self.max_rollouts}: it must be at least 1")
        if self.only is not None and self.only not in ONLY:
            raise ValueError(f"only is {self.only!r}: one of {', '.join(ONLY)} is needed")

    def takes(self, rollout: Rollout) -> bool:
        """True for a rollout of the kind that is asked for."""
        if self.only == "findings":
            return any(rollout.severities[severity] for severity in ("error", "warning"))
        return self.only is None or not rollout.build.trainable


def write_page(reading: Reading, options: Options, *, threads: int | None = None) -> Written:
    """Write the page of what was read."""
    pieces = None if options.tokenizer is None else Pieces(find_tokenizer(options.tokenizer))
    overview = Overview()
    embedded: list[Embedded] = []
    used: set[int] = set()
    taken = 0
    for rollout in _rollouts(reading, options.terminals, threads):
        overview.add(rollout)
        taken += options.takes(rollout)
        is_full = options.max_rollouts is not None and len(embedded) >= options.max_rollouts
        if options.takes(rollout) and not is_full:
            embedded.append(Embedded(row_of(rollout), *details_of(rollout, threads=threads)))
            used |= set() if pieces is None else used_ids(rollout)
    page = Page(
        overview=overview,
        report=reading.report,
        rollouts=embedded,
        pieces=None if pieces is None else pieces.of(used),
        only=options.only,
        passed_over=overview.rollouts - taken,
        cut_off=taken - len(embedded),
    )
    with whole_file(options.path) as stream:
        for part in page.parts():
            stream.write(part.encode("utf-8"))
    return Written(overview.rollouts, len(embedded))


def _rollouts(reading: Reading, terminals: Terminals, threads: int | None) -> Iterator[Rollout]:
    findings: dict[str, list[Finding]] = defaultdict(list)
    for finding in reading.report.findings:
        findings[finding.rollout_id or ""].append(finding)
    for rollout_id, entries in reading.rollouts.items():
        yield Rollout.of(
            rollout_id,
            entries,
            findings[rollout_id],
            terminals.of(rollout_id),
            is_incomplete=rollout_id in reading.incomplete,
            threads=threads,
        )
