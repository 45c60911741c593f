"""What `verify` reports."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Self, TypeAlias

from tokenrecords.text.html import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["SEVERITIES", "Finding", "Report", "VerificationError"]

Severity: TypeAlias = Literal["error", "warning", "info"]

# docs/findings.md says for each what it means for training.
_CODES: Final[dict[Severity, tuple[str, ...]]] = {
    "error": (
        "unreadable_line",
        "lost_call",
        "incomplete_rollout",
        "field_invalid",
        "call_id_conflict",
        "length_mismatch",
        "id_negative",
        "id_outside_vocab",
        "log_prob_not_finite",
        "log_prob_positive",
        "log_prob_sentinel",
        "mask_invalid",
        "item_index_outside",
        "parent_contradiction",
        "parent_self",
        "parent_cycle",
        "parent_not_prefix",
        "delta_unreconstructable",
        "cum_len_mismatch",
        "digest_mismatch",
    ),
    "warning": (
        "log_probs_all_zero",
        "empty_generation",
        "parent_missing",
        "prefix_broken",
        "tokens_in_items",
        "routes_unreadable",
        "routes_incomplete",
    ),
    "info": ("no_digest", "no_resolution", "unresolved_parent", "unknown_field", "no_checksum", "records_retired"),
}
SEVERITIES: Final[Mapping[str, Severity]] = {code: severity for severity, codes in _CODES.items() for code in codes}

_SHOWN = 50  # findings that the text of a report lists


@dataclass(frozen=True)
class Finding:
    """One thing that was found in one record, or of a call that has none.

    Attributes:
        code: What, a key of `SEVERITIES`.
        message: What exactly, with the values.
        severity: `error`, `warning` or `info`; the code decides it (docs/findings.md).
        rollout_id: The record's rollout, None where it can't be read.
        model_call_id: The record's call, None where it can't be read.
        field: The field in question, None where it is the whole record.
        index: The position in that field.
        position: The position of the entry in the input, None for a line that holds no record.
        path: The file that the record was read from, or the one beside it that says so.
        line: Its line there, from 1.
    """

    code: str
    message: str
    severity: Severity = dataclasses.field(init=False)
    rollout_id: str | None = None
    model_call_id: str | None = None
    field: str | None = None
    index: int | None = None
    position: int | None = None
    path: str | None = None
    line: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "severity", SEVERITIES[self.code])

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}: " if self.path is not None else ""
        call = "" if self.model_call_id is None else f"call {self.model_call_id!r} of rollout {self.rollout_id!r}: "
        return f"{place}{self.severity} {self.code}: {call}{self.message}"

    def as_dict(self) -> dict[str, Any]:
        """The attributes, as JSON has them."""
        return dataclasses.asdict(self)


class VerificationError(ValueError):
    """Records have errors.

    Attributes:
        report: What was found.
    """

    def __init__(self, report: Report) -> None:
        """Of a report that has errors."""
        super().__init__(report)  # so that it can be pickled
        self.report = report

    def __str__(self) -> str:
        return str(self.report)


@dataclass(frozen=True)
class Report:
    """What `verify` found.

    Attributes:
        findings: In the order of the records.
        sound: The `(rollout_id, model_call_id)` of the calls without an error.
        records: The number of records looked at.
        ids: The number of token ids in them.
    """

    findings: list[Finding] = dataclasses.field(default_factory=list)
    sound: frozenset[tuple[str, str]] = frozenset()
    records: int = 0
    ids: int = 0

    @classmethod
    def merged(cls, reports: Iterable[Report]) -> Self:
        """One report of several. A call is sound where one report says so and none has an error of it."""
        reports = list(reports)
        findings = [finding for report in reports for finding in report.findings]
        wrong = {(finding.rollout_id, finding.model_call_id) for finding in findings if finding.severity == "error"}
        return cls(
            findings,
            frozenset(call for report in reports for call in report.sound if call not in wrong),
            sum(report.records for report in reports),
            sum(report.ids for report in reports),
        )

    @property
    def ok(self) -> bool:
        """True if no finding is an error."""
        return not self.errors

    @property
    def errors(self) -> list[Finding]:
        """The findings that are errors."""
        return [finding for finding in self.findings if finding.severity == "error"]

    @property
    def counts(self) -> dict[str, int]:
        """The number of findings of each code that occurs, errors first."""
        counts = Counter(finding.code for finding in self.findings)
        return {code: counts[code] for code in SEVERITIES if counts[code]}

    def raise_for_errors(self) -> None:
        """Do nothing where there is no error.

        Raises:
            VerificationError: There is one; it has the report.
        """
        if not self.ok:
            raise VerificationError(self)

    def __str__(self) -> str:
        shown = sorted(self.findings, key=lambda finding: list(_CODES).index(finding.severity))
        more = [f"... and {len(shown) - _SHOWN:,} more"] if len(shown) > _SHOWN else []
        return "\n".join([self.summary(), *map(str, shown[:_SHOWN]), *more])

    def _repr_html_(self) -> str:
        rows = [(SEVERITIES[code], code, count) for code, count in self.counts.items()]
        return table(self.summary(), ("severity", "code", "findings"), rows)

    def summary(self) -> str:
        """One line: records, ids and the number of findings of each severity."""
        counts = Counter(finding.severity for finding in self.findings)
        nouns = {"error": ("error", "errors"), "warning": ("warning", "warnings"), "info": ("info", "infos")}
        found = ", ".join(f"{counts[s]:,} {nouns[s][counts[s] > 1]}" for s in _CODES if counts[s])
        records = f"{self.records:,} record{'' if self.records == 1 else 's'}"
        return f"{records} with {self.ids:,} ids: {found or 'nothing found'}"
