"""A test that is skipped where it is meant to run has failed: TOKENRECORDS_SKIPS says what may be skipped.

With `none`, nothing; with `elsewhere`, what a session of noxfile.py of its own runs, or what this Python can't run;
without the variable, everything.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

NOTHING = re.compile(r"(?!)")
ELSEWHERE = re.compile(
    r"""
    could\ not\ import\ '(anthropic|datasets|duckdb|polars|ray\.data|selenium|tokenizers)'
    | needs\ datasets\ and\ polars
    | nox\ -s\ docs\ builds\ the\ site
    | there\ is\ no\ GIL\ to\ release
    | without\ the\ GIL,\ references\ are\ counted\ in\ several\ places
    | protocols\ have\ since\ 3\.12
    """,
    re.VERBOSE,
)
ALLOWED = {None: None, "none": NOTHING, "elsewhere": ELSEWHERE}[os.environ.get("TOKENRECORDS_SKIPS")]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    judge(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    judge(report)
    return report


def judge(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Make a skip that is not allowed a failure."""
    if ALLOWED is None or not report.skipped:
        return
    path, line, reason = report.longrepr
    if not ALLOWED.search(reason):
        report.outcome = "failed"
        report.longrepr = f"{path}:{line}: {reason}: this session is meant to run it"
