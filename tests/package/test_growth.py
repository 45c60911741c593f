"""What takes many things takes time in proportion: operations of the cases in benches/growth.py are counted."""

import importlib.util
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FEW, FACTOR = 60, 4
# Sorting takes a little more than in proportion. Half of a percent of quadratic work shows, at this size.
MOST = 4.6


def load_growth():
    spec = importlib.util.spec_from_file_location("growth", REPOSITORY / "benches" / "growth.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


GROWTH = load_growth()
CASES = dict(GROWTH.cases())
# Its chains hold n * n / 8 calls together.
COMB = "build_chains, comb"


def operations(run):
    """The result, and the number of bytecode instructions that were taken to it."""
    return counted_by_monitoring(run) if sys.version_info >= (3, 12) else counted_by_trace(run)


def counted_by_monitoring(run):
    count = 0

    def instruction(_code, _offset):
        nonlocal count
        count += 1

    monitoring, tool = sys.monitoring, 4
    monitoring.use_tool_id(tool, "operations")
    try:
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, instruction)
        monitoring.set_events(tool, monitoring.events.INSTRUCTION)
        result = run()
        monitoring.set_events(tool, monitoring.events.NO_EVENTS)
    finally:
        monitoring.free_tool_id(tool)
    return result, count


def counted_by_trace(run):
    count = 0

    def trace(frame, _event, _argument):
        nonlocal count
        count += 1
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        result = run()
    finally:
        sys.settrace(before)
    return result, count


@pytest.mark.parametrize("name", sorted(CASES.keys() - {COMB}))
def test_four_times_as_many_things_take_about_four_times_the_operations(name):
    CASES[name](16)()  # what is made once, and imported
    few, many = (operations(CASES[name](n))[1] for n in (FEW, FACTOR * FEW))
    assert 0 < many < MOST * few


def test_chains_take_operations_in_proportion_to_the_calls_in_them():
    CASES[COMB](16)()
    (few, before), (many, after) = (operations(CASES[COMB](n)) for n in (FEW, FACTOR * FEW))
    calls = [sum(len(chain.call_ids) for chain in build.chains) for build in (few, many)]
    assert calls[1] > 10 * calls[0]
    assert after / before < calls[1] / calls[0]


def test_every_operation_counts():
    def some(n):
        return sum(1 for i in range(n) if i < 0)

    assert operations(lambda: some(10_000))[1] > 10 * operations(lambda: some(100))[1] > 0
