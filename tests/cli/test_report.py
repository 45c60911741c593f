"""The command `report`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import run
from support.factories import call, conversation
from support.page import Page
from tokenrecords import write_jsonl

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_it_writes_a_page_of_what_the_other_commands_take(tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    done = run("report", EXAMPLES / "served_responses.jsonl", "-o", page)
    assert done.exit_code == 0, done.output
    assert done.output == f"4 rollouts written to {page}: {page.stat().st_size:,} bytes\n"
    assert len(Page(page).rows) == 4


def test_options_reach_the_page(tmp_path: Path) -> None:
    file, page = tmp_path / "r.tokens.jsonl", tmp_path / "p.html"
    others = [call("x", [1], [2], rollout_id=name) for name in "ab"] + [
        call("y", [5], [6], rollout_id=name) for name in "ab"
    ]
    write_jsonl(file, [*conversation(1), *others])
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": {"vocab": {"one": 1}}}))
    done = run(
        *("report", file, "--out", page, "--tokenizer", tmp_path, "--max-rollouts", 1, "--only", "untrainable"),
    )
    assert done.output == f"1 of 3 rollouts written to {page}: {page.stat().st_size:,} bytes\n"
    assert [row["id"] for row in Page(page).rows] == ["a"]
    assert Page(page).pieces == {"1": ["one"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "p.txt"), "path is p.txt: a name that ends with .html is needed"),
        (("-o", "p.html", "--only", "x"), "only is 'x': one of findings, untrainable is needed"),
        (("-o", "p.html", "--tokenizer", "nowhere"), "tokenizer is nowhere: a tokenizer.json is needed"),
        (("-o", "no/p.html"), "No such file or directory"),
        (("-o", "p.html", "--max-rollouts", "0"), "Invalid value for '--max-rollouts'"),
    ],
)
def test_what_can_not_be_done_is_said(
    tmp_path: Path, arguments: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl("r.tokens.jsonl", conversation(1))
    done = run("report", "r.tokens.jsonl", *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", "").split())
    assert [path.name for path in tmp_path.iterdir()] == ["r.tokens.jsonl"]


def test_a_directory_without_records_is_said(tmp_path: Path) -> None:
    done = run("report", tmp_path, "-o", tmp_path / "p.html")
    assert done.exit_code == 2
    assert "holds no" in done.stderr


def test_without_its_extra_the_command_says_so(tmp_path: Path) -> None:
    arguments = ["report", str(EXAMPLES / "served_responses.jsonl"), "-o", str(tmp_path / "p.html")]
    code = f"import sys; sys.modules['jinja2'] = None; sys.argv[1:] = {arguments}; "
    code += "import tokenrecords.__main__ as m; m.main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == "tokenrecords: the command needs an extra: pip install 'tokenrecords[report]'\n"


def test_other_commands_do_without_the_extra() -> None:
    code = "import sys; sys.modules['jinja2'] = None; sys.argv[1:] = ['--version']; "
    code += "import tokenrecords.__main__ as m; m.main()"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
