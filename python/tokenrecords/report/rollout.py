"""One rollout as the page shows it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tokenrecords.lineage.paths import Paths, Terminal, find_paths
from tokenrecords.report.breaks import breaks_of
from tokenrecords.report.calls import CallShown, in_tree_order, shown_calls, start_of
from tokenrecords.report.embedding import Stored, arrays_of
from tokenrecords.text.printable import printable
from tokenrecords.tokens.names import GENERATION, LOG_PROBS, LOSS_MASK, PROMPT
from tokenrecords.training.chains import ChainBuild, built

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tokenrecords.entry.model import TokenEntry
    from tokenrecords.lineage.call import Call
    from tokenrecords.verification.findings import Finding

_GENERATED: Final = frozenset({GENERATION, LOG_PROBS, LOSS_MASK})


@dataclass(frozen=True)
class Rollout:
    """The calls of one rollout, linked and judged.

    Attributes:
        id: Its id.
        records: The number of its records.
        found: Its calls.
        build: Its chains.
        findings: What is wrong with its records.
    """

    id: str
    records: int
    found: Paths
    build: ChainBuild
    findings: list[Finding]

    @classmethod
    def of(
        cls,
        rollout_id: str,
        entries: list[TokenEntry],
        findings: list[Finding],
        terminal: Terminal,
        *,
        is_incomplete: bool,
        threads: int | None = None,
    ) -> Rollout:
        """Of its records, which are linked here."""
        found = find_paths(entries, terminal, threads=threads)
        build = built(entries, found, is_incomplete=is_incomplete)
        return cls(rollout_id, len(entries), found, build, findings)

    @property
    def calls(self) -> list[Call]:
        """The calls that have ids."""
        return self.found.links.calls

    @property
    def trained(self) -> int:
        """Ids that carry loss in the main chain; none where the rollout is not trainable."""
        main = self.build.main
        return int(main.loss_mask.sum()) if main is not None and self.build.trainable else 0

    @property
    def generated(self) -> int:
        """Generated ids of all calls."""
        return self.build.notes.generated_tokens_captured

    @property
    def ids(self) -> int:
        """Ids of all calls, those that several share once."""
        return sum(call.length - start_of(call) for call in self.calls)

    @property
    def severities(self) -> dict[str, int]:
        """The number of findings of each severity."""
        counts = dict.fromkeys(("error", "warning", "info"), 0)
        for finding in self.findings:
            counts[finding.severity] += 1
        return counts


def row_of(rollout: Rollout) -> dict[str, Any]:
    """The rollout as a row of the table, as values of JSON."""
    extras = [call.entry.model_extra or {} for call in rollout.calls]
    versions = [extra["weight_version"] for extra in extras if extra.get("weight_version") is not None]
    return {
        "id": printable(str(rollout.id)),
        "calls": rollout.records,
        "ids": rollout.ids,
        "generated": rollout.generated,
        "trained": rollout.trained,
        "models": _texts(call.entry.model for call in rollout.calls),
        "versions": _texts(versions),
        "reasons": rollout.build.reasons,
        "codes": list(dict.fromkeys(finding.code for finding in rollout.findings)),
        **rollout.severities,
    }


def _texts(values: Iterable[Any]) -> list[str]:
    return [text for text in dict.fromkeys(printable(str(value)) for value in values) if text]


def details_of(rollout: Rollout, *, threads: int | None = None) -> tuple[dict[str, Any], str]:
    """All that the page shows of the rollout's calls, as values of JSON; and their arrays as text."""
    ordered = in_tree_order(rollout.calls)
    places = {call: place for place, (call, _) in enumerate(ordered)}
    stored, arrays = arrays_of(places)
    links = rollout.found.links
    left_out = [(call_id, "generated nothing") for call_id in links.empty] + links.left_out
    by_id = {call.id: call for call in places}
    details = {
        "calls": [_call(call, of) for call, of in zip(shown_calls(ordered, rollout.found), stored, strict=True)],
        "chains": [
            {"name": chain.chain_id, "call": places[path[-1]], "ids": len(chain)}
            for chain, path in zip(rollout.build.chains, rollout.found.paths, strict=True)
        ],
        "breaks": [broken._asdict() for broken in breaks_of(places, threads=threads)],
        "left_out": [[printable(call_id), why] for call_id, why in left_out],
        "findings": [_finding(finding, by_id, places) for finding in rollout.findings],
    }
    return details, arrays


def _call(call: CallShown, stored: tuple[Stored, Stored, bool]) -> dict[str, Any]:
    ids, log_probs, has_mask = stored
    return {**asdict(call), "stored": {"ids": ids, "log_probs": log_probs, "mask": has_mask}}


def _finding(finding: Finding, by_id: Mapping[str, Call], places: Mapping[Call, int]) -> dict[str, Any]:
    call = by_id.get(finding.model_call_id or "")
    return {
        "severity": finding.severity,
        "code": finding.code,
        "message": printable(finding.message),
        "id": printable(finding.model_call_id or ""),
        "call": None if call is None else places[call],
        "position": None if call is None else _position(finding, call),
        "where": "" if finding.path is None else printable(f"{finding.path}:{finding.line}"),
    }


def _position(finding: Finding, call: Call) -> int | None:
    """The position in the call's sequence that a finding is about."""
    if finding.index is None:
        return None
    start = call.length - call.own if finding.field == PROMPT else len(call.prompt)
    position = start + finding.index
    return position if finding.field in {PROMPT, *_GENERATED} and position < call.length else None


def used_ids(rollout: Rollout) -> set[int]:
    """The ids that occur."""
    used: set[int] = set()
    for call in rollout.calls:
        for ids in (call.prompt[start_of(call) :], call.generation):
            used.update(np.unique(ids).tolist())
    return used
