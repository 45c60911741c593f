"""Writes the README's table of speed from benches/results.json, which `bench.py --json` writes.

python benches/table.py [--check]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
RESULTS, README = HERE / "results.json", HERE.parent / "README.md"
START, END = "<!-- written by benches/table.py -->\n", "<!-- end of what benches/table.py writes -->\n"

# What the README calls a row; its table and row in the results; what the third number is against.
HASHLIB = "numpy/array", "`numpy` + `hashlib`"
ONE_THREAD = "numpy/one", "`numpy` + `hashlib`, one thread"
NUMPY = "numpy/array", "`numpy`"
ORJSON = "orjson/bytes", "`orjson`, from lists"
ROWS = [
    ("`encode_token_ids`, 32,768 int32 ids", "functions", "encode_token_ids, 32,768", NUMPY),
    ("`compute_digest`, 32,768", "functions", "compute_digest, 32,768", HASHLIB),
    ("`compute_digests`, 64 x 512", "batches", "64 x 512", ONE_THREAD),
    ("`compute_digests`, 256 x 4,096", "batches", "256 x 4,096", ONE_THREAD),
    ("`compute_digests`, 32 x 32,768", "batches", "32 x 32,768", ONE_THREAD),
    ("`TokenEntry(...)`, 32,768 + 1,024", "functions", "TokenEntry(...), 32,768", None),
    ("`stamp_lineage`, 32,768 + 1,024", "functions", "stamp_lineage, 32,768", HASHLIB),
    ("`cumulative_tokens`, 32,768 + 1,024", "functions", "cumulative_tokens, 32,768", NUMPY),
    ("write 24 records of 16,384 + 512", "files", "write", None),
    ("read them", "files", "read", None),
    ("`build_chains`, 50 turns to 127,000 ids", "chains", "50", None),
    ("body of a response to a record, 4,096 + 512", "bodies", "4,096 + 512", ORJSON),
    ("body of a response to a record, 32,768 + 1,024", "bodies", "32,768 + 1,024", ORJSON),
    ("stream of 2,000 chunks to a response", "streams", "vLLM chat", ORJSON),
]


def times(ratio: float) -> str:
    """A ratio as people say it: near 1 its second decimal matters, far above none does."""
    return f"{ratio:.{2 if ratio < 1.2 else 1 if ratio < 20 else 0}f}x"


def table(results: dict) -> str:
    """The rows, and what they were measured on."""
    lines = ["| | arrays | lists | arrays, against |", "| --- | ---: | ---: | ---: |"]
    for label, name, row, against in ROWS:
        numbers = results["tables"][name][row]
        ours = (times(numbers[way]) if way in numbers else "" for way in ("reference/array", "reference/list"))
        third = f"{times(numbers[against[0]])} {against[1]}" if against else ""
        lines.append(" | ".join(("", label, *ours, third, "")).strip())
    on = results["measured"]
    lines += [
        "",
        f"Measured on: {on['machine']}; {on['python']}, numpy {on['numpy']}, pydantic {on['pydantic']};",
        f"commit {on['commit']} against {on['reference']}; medians of {on['rounds']} rounds, each way in turn.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    before, start, rest = README.read_text(encoding="utf-8").partition(START)
    old, end, after = rest.partition(END)
    if not (start and end):
        sys.exit(f"README.md has no table to replace: the lines {START.strip()} and {END.strip()} are needed")
    new = table(json.loads(RESULTS.read_text(encoding="utf-8")))
    if sys.argv[1:] != ["--check"]:
        README.write_text(before + start + new + end + after, encoding="utf-8")
    elif new != old:
        sys.exit("README.md's table is not that of benches/results.json: `python benches/table.py` is needed")


if __name__ == "__main__":
    main()
