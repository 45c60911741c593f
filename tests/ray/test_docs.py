"""What the documentation of clusters shows runs, and trains on what one process would train on."""

from __future__ import annotations

import doctest
import itertools
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.clusters import rollout, write_rollouts
from tokenrecords import build_rollouts, ray, write_jsonl
from tokenrecords.arrow import chains_to_arrow
from tokenrecords.ray import link_table

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")

PAGE = Path(__file__).parents[2] / "docs" / "clusters.md"
TRAINING, MIXED = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def test_from_a_directory_to_a_training_loop(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_rollouts(tmp_path, 100)
    (tmp_path / "r007.intents").write_text("lost\n")  # not to be trained on
    steps: list[tuple[int, ...]] = []

    def train_step(ids: Any, loss_mask: Any, cu_seqlens: Any) -> None:
        assert ids.dtype == np.int64
        for start, end in itertools.pairwise(cu_seqlens):
            steps.append((*ids[start:end].tolist(), *loss_mask[start:end].tolist()))

    exec(TRAINING, {"directory": tmp_path, "train_step": train_step})
    expected = [
        (*build.main.token_ids.tolist(), *build.main.loss_mask.tolist())
        for build in build_rollouts(tmp_path)
        if build.trainable
    ]
    assert len(expected) == 99
    assert sorted(steps) == sorted(expected * 2)
    assert capsys.readouterr().out == "300 records with 2,100 ids: 1 error\n"


def test_mixed_files(tmp_path: Path) -> None:
    entries = [entry for number in range(3) for entry in rollout(f"r{number}")]
    write_jsonl(tmp_path / "a.tokens.jsonl", entries[::2])
    write_jsonl(tmp_path / "b.tokens.jsonl", entries[1::2])
    names: dict[str, Any] = {"directory": tmp_path}
    exec(MIXED, names)
    table = names["chains"].materialize()
    assert table.count() == chains_to_arrow(build_rollouts(entries)).num_rows


@pytest.mark.parametrize("name", ray.__all__)
def test_examples(name: str) -> None:
    found = getattr(ray, name)
    example = doctest.DocTestParser().get_doctest(found.__doc__, {"link_table": link_table}, name, None, None)
    assert example.examples
    runner, report = doctest.DocTestRunner(), []
    runner.run(example, out=report.append)
    assert not runner.failures, "".join(report)
