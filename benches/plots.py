"""Draws the plots of docs/performance.md from benches/results.json, which `bench.py --json` writes.

python benches/plots.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("svg")

import matplotlib.pyplot as plt

HERE = Path(__file__).parent
RESULTS, IMAGES = HERE / "results.json", HERE.parent / "docs" / "images"
# Told apart by people who see few colours: Okabe and Ito.
OURS, THEIRS, THIRD = "#0072B2", "#D55E00", "#009E73"
STYLE = {
    "svg.hashsalt": "tokenrecords",  # the same picture from the same numbers
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.figsize": (7, 3.6),
    "figure.constrained_layout.use": True,
}

Tables = dict[str, dict[str, dict[str, float | None]]]


def save(figure: Any, name: str) -> None:
    IMAGES.mkdir(exist_ok=True)
    figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def digests(tables: Tables) -> None:
    """Time of one digest against its length, as a multiple of SHA-256 over ready bytes."""
    rows = tables["digests"]
    sizes = [int(label.replace(",", "")) for label in rows]
    figure, axes = plt.subplots()
    for key, label, colour in (
        ("reference/bound", "reference, list", THEIRS),
        ("numpy/bound", "numpy + hashlib, int32 array", THIRD),
        ("array/bound", "tokenrecords, int32 array", OURS),
    ):
        axes.plot(sizes, [row[key] for row in rows.values()], "o-", label=label, color=colour)
    axes.axhline(1, color="black", linewidth=1, linestyle="--", label="SHA-256 over ready bytes")
    axes.set(xscale="log", xlabel="token ids", ylabel="time, times the bound", ylim=(0, None), title="One digest")
    axes.legend(fontsize=9)
    save(figure, "digest")


def functions(tables: Tables) -> None:
    """How many times faster than the reference each function is, against the length."""
    figure, axes = plt.subplots()
    found: dict[str, list[tuple[int, float | None]]] = {}
    for label, row in tables["functions"].items():
        name, _, size = label.partition(", ")
        found.setdefault(name, []).append((int(size.replace(",", "")), row["reference/array"]))
    for (name, points), mark in zip(found.items(), "os^Dv", strict=True):
        axes.plot(*zip(*points, strict=True), f"{mark}-", label=name)
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="token ids", ylabel="times faster")
    axes.set(title="Functions on arrays, against the reference on lists")
    axes.legend(fontsize=9)
    save(figure, "functions")


def bars(tables: Tables, name: str, title: str, rows: list[tuple[str, str, str, str]]) -> None:
    """A bar for each of some numbers: its label, table, row and column."""
    there = [(label, tables[table][row][column]) for label, table, row, column in rows]
    figure, axes = plt.subplots()
    drawn = axes.bar([label for label, _ in there], [number or 0 for _, number in there], color=OURS)
    axes.bar_label(drawn, fmt="%.1fx")
    axes.axhline(1, color="black", linewidth=1, linestyle="--")
    axes.set(ylabel="times faster", title=title)
    axes.grid(visible=False, axis="x")
    axes.tick_params("x", labelsize=9)
    save(figure, name)


def main() -> None:
    tables: Tables = json.loads(RESULTS.read_text(encoding="utf-8"))["tables"]
    with mpl.rc_context(STYLE):
        digests(tables)
        functions(tables)
        shapes = [shape for shape in tables["batches"] if " to " not in shape]
        ways = (("1 thread", "bound/one"), ("2 threads", "bound/two"))
        rows = [(f"{shape}\n{threads}", "batches", shape, column) for shape in shapes for threads, column in ways]
        bars(tables, "batches", "Batches, against SHA-256 over ready bytes", rows)
        kinds = (("arrays", "reference/array"), ("lists", "reference/list"))
        rows = [(f"{row}, {kind}", "files", row, column) for row in tables["files"] for kind, column in kinds]
        bars(tables, "files", "Files of records, against pydantic + orjson on lists", rows)
        rows = [(row.replace(", ", "\n"), "bodies", row, "orjson/bytes") for row in tables["bodies"]]
        bars(tables, "bodies", "Bodies of responses to records, against orjson.loads and lists", rows)


if __name__ == "__main__":
    main()
