"""Lines are read natively, and what is captured is what the parsed rows give."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from support.bodies import damaged, large_payload, spelled, with_fault
from support.payloads import vllm_chat, vllm_choice
from support.sound_payloads import sound_payloads
from tokenrecords.capture import entries, rollouts
from tokenrecords.capture.rollouts import Capture
from tokenrecords.engines.body import natively, spliced

IDS = list(range(100, 120))
PROMPT = list(range(20))
CHOICE = vllm_choice(ids=IDS, log_probs=[-0.5] * 20)
DIALECTS = sorted(sound_payloads([1], [([2], [-1.0])]))


def captured(lines: list[bytes]) -> Any:
    """The records, their lines, and the faults."""
    capture = Capture(lambda _: ())
    list(capture.read(lines, "f"))
    return list(capture.linked()), [str(fault) for fault in capture.faults()]


@pytest.fixture
def parses(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Reads lines without the native reader."""
    monkeypatch.setattr(entries.time, "time", lambda: 5.0)

    def read(lines: list[bytes]) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(rollouts, "natively", lambda _line, _read: None)
            return captured(lines)

    return read


def row(response: Any, **more: Any) -> dict[str, Any]:
    return {"rollout_id": "r", "model_call_id": "c", "response": response, **more}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("dialect", DIALECTS)
def test_lines_with_faults_give_equal_records_or_equal_faults(dialect, seed, parses):
    chance = random.Random(seed)
    lines = []
    for number in range(12):
        line = row(large_payload(dialect, chance), request={"input_ids": PROMPT} if chance.random() < 0.2 else {})
        line["model_call_id"] = str(number)
        for _ in range(chance.randint(0, 2)):
            line = with_fault(line, chance)
        body = spelled(line, chance)
        lines.append(damaged(body, chance) if chance.random() < 0.1 else body)
    (found, faults), (wanted, wanted_faults) = captured(lines), parses(lines)
    assert faults == wanted_faults
    assert [(rollout, records) for rollout, _, records in found] == [
        (rollout, records) for rollout, _, records in wanted
    ]


@pytest.mark.parametrize(
    "line",
    [
        row(vllm_chat(CHOICE, prompt_token_ids=PROMPT)),
        row(vllm_chat(CHOICE, prompt_token_ids=PROMPT), request={"input_ids": PROMPT}),
        row(vllm_chat(CHOICE, prompt_token_ids=PROMPT), prompt_token_ids=PROMPT),
    ],
)
def test_a_row_is_read_natively(line):
    body = json.dumps(line).encode()
    [entry] = natively(spliced(body), lambda native: Capture(lambda _: ())._of_row(native.payload, native))
    assert isinstance(entry.prompt_token_ids, np.ndarray)
    assert entry.prompt_token_ids.tolist() == PROMPT
    assert entry.generation_token_ids.tolist() == IDS


def test_extra_fields_stay_lists(parses):
    choice = {**CHOICE, "ng_token_ids": [7] * 20}
    line = json.dumps(row(vllm_chat(choice, prompt_token_ids=PROMPT))).encode()
    (found, faults), (wanted, _) = captured([line]), parses([line])
    assert (found, faults) == (wanted, [])
    [(_, [record], _)] = found
    assert record.ng_token_ids == [7] * 20


def test_several_prompts_of_the_request(parses):
    meta = {"finish_reason": {"type": "stop"}, "output_token_logprobs": [[-0.5, i, None] for i in IDS]}
    sample = {"text": "x", "output_ids": IDS, "meta_info": meta}
    line = json.dumps(row([sample, sample], request={"input_ids": [PROMPT, PROMPT[1:]]})).encode()
    assert natively(spliced(line), lambda native: Capture(lambda _: ())._of_row(native.payload, native)) is not None
    [(_, records, _)], faults = captured([line])
    assert not faults
    assert [list(record.prompt_token_ids) for record in records] == [PROMPT, PROMPT[1:]]
    [(_, wanted, _)], _ = parses([line])
    assert wanted == records
