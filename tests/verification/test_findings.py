"""Findings and reports: what they say, and how they are sent."""

from __future__ import annotations

import json
import pickle

import pytest
from support.factories import call
from tokenrecords import Finding, Report, VerificationError, verify
from tokenrecords.entry.model import set_origin


def test_a_finding_names_the_line_of_a_file() -> None:
    entry = call("a", [1], [2], digest="0" * 64)
    set_origin(entry, "records.tokens.jsonl", 7)
    (finding,) = verify([call("b", [1], [2]), entry]).findings
    assert (finding.path, finding.line, finding.position) == ("records.tokens.jsonl", 7, 1)
    assert str(finding).startswith("records.tokens.jsonl:7: error digest_mismatch: call 'a' of rollout 'r': digest is ")
    assert json.loads(json.dumps(finding.as_dict()))["severity"] == "error"


def test_a_report_can_be_raised_and_sent() -> None:
    report = verify([call("a", [1], [2], digest="0" * 64), call("b", [1], [2], digest=None)])
    with pytest.raises(VerificationError, match="digest_mismatch") as raised:
        report.raise_for_errors()
    assert raised.value.report is report
    assert raised.value.args == (report,)
    assert pickle.loads(pickle.dumps(raised.value)).report == report
    assert str(report).splitlines()[0] == "2 records with 4 ids: 1 error, 1 info"
    assert str(verify([call(str(n), [1], [2], digest=None) for n in range(60)])).splitlines()[-1] == "... and 10 more"


def test_reports_are_merged() -> None:
    good, bad = verify([call("a", [1], [2])]), verify([call("a", [1], [2], digest="0" * 64), call("b", [1], [2])])
    line = Report([Finding("unreadable_line", "torn", path="x.jsonl", line=3)])
    merged = Report.merged([good, bad, line])
    assert (merged.records, merged.ids, merged.sound) == (3, 6, {("r", "b")})
    assert merged.counts == {"unreadable_line": 1, "digest_mismatch": 1}
    assert str(merged).splitlines()[-1] == "x.jsonl:3: error unreadable_line: torn"
    assert Report.merged([]) == Report()


def test_a_call_with_a_warning_stays_sound() -> None:
    report = verify([call("a", [1], [2], digest=None)])
    assert Report.merged([report]).sound == report.sound == {("r", "a")}


def test_errors_come_first() -> None:
    entries = [
        call("a", [1], [2], digest=None),
        call("b", [1], []),
        call("c", [1], [2], digest="0" * 64),
    ]
    report = verify(entries)
    assert list(report.counts.items()) == [("digest_mismatch", 1), ("empty_generation", 1), ("no_digest", 1)]
    assert [text.split()[0] for text in str(report).splitlines()[1:]] == ["error", "warning", "info"]


def test_fifty_findings_are_listed_and_of_more_the_number_is_said() -> None:
    def shown(count: int) -> list[str]:
        return str(Report([Finding("no_digest", str(number)) for number in range(count)])).splitlines()

    assert shown(50) == [
        "0 records with 0 ids: 50 infos",
        *(f"info no_digest: {number}" for number in range(50)),
    ]
    assert shown(51)[-2:] == ["info no_digest: 49", "... and 1 more"]
    assert shown(2_050)[-1] == "... and 2,000 more"


def test_a_summary_says_numbers_as_they_are_read() -> None:
    def summary(count: int, records: int = 0) -> str:
        findings = [Finding(code, "") for code in ("id_negative", "parent_missing", "no_digest") for _ in range(count)]
        return Report(findings, records=records, ids=1_234_567).summary()

    assert summary(0) == "0 records with 1,234,567 ids: nothing found"
    assert summary(1, 1) == "1 record with 1,234,567 ids: 1 error, 1 warning, 1 info"
    assert summary(2, 2) == "2 records with 1,234,567 ids: 2 errors, 2 warnings, 2 infos"
    assert summary(1_000, 1_000) == "1,000 records with 1,234,567 ids: 1,000 errors, 1,000 warnings, 1,000 infos"


def test_a_finding_of_no_call_names_none() -> None:
    assert str(Finding("incomplete_rollout", "why", rollout_id="r")) == "error incomplete_rollout: why"
    assert str(Finding("no_digest", "why", model_call_id="c")) == "info no_digest: call 'c' of rollout None: why"
