"""The recipes of docs/trainers.md run, and every trained token is read back out of what they make.

What they import of a trainer is stood in for; torch, too, where it is not installed.
"""

from __future__ import annotations

import importlib
import itertools
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.factories import call
from support.places import REPOSITORY
from tokenrecords import Chain, build_chains, pack_chains

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PAGE = (REPOSITORY / "docs" / "trainers.md").read_text(encoding="utf-8")
PAD, SEQ_LEN = 0, 9

Token = tuple[int, float, float | None]


def recipes() -> dict[str, list[str]]:
    """The code below each heading."""
    found = re.findall(r"^### (.*?)$(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    return {name: re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL) for name, text in found}


def chains() -> list[Chain]:
    """Of several rollouts: turns, a tool's tokens in a completion, a fork, and lengths of all kinds."""
    first = call("a", [1, 2], [3, 4, 5], rollout_id="r", generation_loss_mask=[1, 0, 1])
    then = call("b", [1, 2, 3, 4, 5, 6], [7], "a", rollout_id="r", weight_version=2)
    fork = call("c", [1, 2, 3, 4, 5, 8], [9, 10], "a", rollout_id="r")
    short = call("a", [11], [12], rollout_id="s")
    long = call("a", [13, 14, 15, 16], [17, 18, 19, 20], rollout_id="t")
    masked = call("a", [21, 22], [23, 24], rollout_id="u", generation_loss_mask=[0, 1])
    return [chain for calls in ([first, then, fork], [short], [long], [masked]) for chain in build_chains(calls).rows()]


CHAINS = chains()
ADVANTAGES, REWARDS = [0.5, -1.5, 2.0, 0.25, -0.75], [1.0, 0.0, 1.0, 1.0, 0.0]


def trained(*, advantages: bool = True) -> list[list[Token]]:
    """Id, log-prob and advantage of the tokens of each chain that carry loss."""
    return [
        [
            (token, log_prob, advantage if advantages else None)
            for token, log_prob, carries in zip(
                chain.token_ids.tolist(), chain.log_probs.tolist(), chain.loss_mask.tolist(), strict=True
            )
            if carries
        ]
        for chain, advantage in zip(CHAINS, ADVANTAGES, strict=True)
    ]


class StandIn:
    """`torch.from_numpy`, and no more: it takes an array that torch would take as it is."""

    @staticmethod
    def from_numpy(array: Any) -> Any:
        assert isinstance(array, np.ndarray)
        assert array.flags.writeable
        assert array.dtype.isnative
        assert all(stride >= 0 for stride in array.strides)
        return array


def torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ModuleNotFoundError:
        return StandIn


def names() -> dict[str, Any]:
    """What the recipes are given."""
    kept = ("AgentLoopOutput", "AgentLoopMetrics", "Experience", "Sample", "TrainingSample", "TrainingAdvantage",
            "TrainingMicrobatch", "BatchedDataDict", "TrainingInputBatch")  # fmt: skip
    return {
        "np": np, "itertools": itertools, "torch": torch(), "pack_chains": pack_chains, "chains": CHAINS,
        "advantages": ADVANTAGES, "rewards": REWARDS, "PAD": PAD, "SEQ_LEN": SEQ_LEN,
        "DataProto": SimpleNamespace(from_single_dict=dict),
        "tinker": SimpleNamespace(Datum=dict, ModelInput=SimpleNamespace(from_ints=list)),
        **dict.fromkeys(kept, dict),
    }  # fmt: skip


def run(name: str, place: int = 0) -> dict[str, Any]:
    namespace = names()
    exec(compile(recipes()[name][place], f"docs/trainers.md, {name}", "exec"), namespace)
    return namespace


def arrays(batch: dict[str, Any]) -> dict[str, Any]:
    return {name: np.asarray(value) for name, value in batch.items()}


def dtypes(batch: dict[str, Any]) -> dict[str, str]:
    return {name: f"{array.dtype}{array.shape}" for name, array in arrays(batch).items()}


def rows_of(ids: Any, log_probs: Any, mask: Any, advantages: Any) -> list[list[Token]]:
    """The tokens of each row where the mask is not 0."""
    return [flat_of(*row) for row in zip(ids, log_probs, mask, advantages, strict=True)]


def flat_of(ids: Any, log_probs: Any, mask: Any, advantages: Iterable[float] | None = None) -> list[Token]:
    given = itertools.repeat(None) if advantages is None else map(float, advantages)
    found = zip(map(int, ids), map(float, log_probs), given, map(bool, mask), strict=False)
    assert len(ids) == len(log_probs) == len(mask)
    return [(token, log_prob, advantage) for token, log_prob, advantage, carries in found if carries]


def verl() -> None:
    data = run("verl")["data"]
    assert dtypes(data) == {
        "prompts": "int64(5, 1024)", "responses": "int64(5, 4096)", "input_ids": "int64(5, 5120)",
        "attention_mask": "int64(5, 5120)", "position_ids": "int64(5, 5120)", "response_mask": "int64(5, 4096)",
        "rollout_log_probs": "float32(5, 4096)", "advantages": "float32(5, 4096)",
    }  # fmt: skip
    batch = arrays(data)
    found = rows_of(batch["responses"], batch["rollout_log_probs"], batch["response_mask"], batch["advantages"])
    assert found == trained()
    there = batch["attention_mask"].astype(bool)
    assert [ids[mask].tolist() for ids, mask in zip(batch["input_ids"], there, strict=True)] == [
        chain.token_ids.tolist() for chain in CHAINS
    ]
    assert (np.hstack([batch["prompts"], batch["responses"]]) == batch["input_ids"]).all()
    # As verl counts positions of a mask, wherever there is a token.
    counted = np.clip(np.cumsum(batch["attention_mask"], axis=-1) - 1, 0, None)
    assert (batch["position_ids"] == counted)[there].all()
    assert there[:, 1023:1025].all()


def verl_agent_loop() -> None:
    outputs = list(map(run("verl", 1)["output_of"], CHAINS))
    found = [flat_of(one["response_ids"], one["response_logprobs"], one["response_mask"]) for one in outputs]
    assert found == trained(advantages=False)
    assert [one["prompt_ids"] + one["response_ids"] for one in outputs] == [each.token_ids.tolist() for each in CHAINS]
    assert [one["num_turns"] for one in outputs] == [2, 2, 1, 1, 1]
    assert {type(flag) for one in outputs for flag in one["response_mask"]} == {int}


def nemo_rl() -> None:
    data = run("NeMo-RL")["data"]
    assert dtypes(data) == {
        "input_ids": "int64(5, 8)", "input_lengths": "int32(5,)", "generation_logprobs": "float32(5, 8)",
        "token_mask": "int64(5, 8)", "sample_mask": "float32(5,)", "advantages": "float32(5, 8)",
    }  # fmt: skip
    batch = arrays(data)
    # Its loss drops the first column of each.
    columns = (batch[name][:, 1:] for name in ("input_ids", "generation_logprobs", "token_mask", "advantages"))
    assert rows_of(*columns) == trained()
    assert [row[:length].tolist() for row, length in zip(batch["input_ids"], batch["input_lengths"], strict=True)] == [
        chain.token_ids.tolist() for chain in CHAINS
    ]


def skyrl() -> None:
    output = run("SkyRL")["output"]
    columns = (output[name] for name in ("response_ids", "rollout_logprobs", "loss_masks"))
    assert [flat_of(*row) for row in zip(*columns, strict=True)] == trained(advantages=False)
    assert [one + two for one, two in zip(output["prompt_token_ids"], output["response_ids"], strict=True)] == [
        chain.token_ids.tolist() for chain in CHAINS
    ]
    assert output["rewards"] == REWARDS


def skyrl_tensors() -> None:
    data = run("SkyRL", 1)["data"]
    assert dtypes(data) == {
        "sequences": "int64(5, 8)", "attention_mask": "int64(5, 8)", "response_mask": "int64(5, 6)",
        "loss_mask": "float32(5, 6)", "rollout_logprobs": "float32(5, 6)", "advantages": "float32(5, 6)",
    }  # fmt: skip
    batch = arrays(data)
    # The actions are the last tokens of each row.
    actions = batch["sequences"][:, -batch["loss_mask"].shape[1] :]
    assert rows_of(actions, batch["rollout_logprobs"], batch["loss_mask"], batch["advantages"]) == trained()
    responses = [ids[mask == 1].tolist() for ids, mask in zip(actions, batch["response_mask"], strict=True)]
    assert responses == [chain.split().response_ids.tolist() for chain in CHAINS]
    assert [ids[mask == 1].tolist() for ids, mask in zip(batch["sequences"], batch["attention_mask"], strict=True)] == [
        chain.token_ids.tolist() for chain in CHAINS
    ]


def trl() -> None:
    output = run("TRL")["rollout_func"](["prompt"] * 5, None)
    assert list(output) == ["prompt_ids", "completion_ids", "logprobs", "env_mask"]
    columns = (output[name] for name in ("completion_ids", "logprobs", "env_mask"))
    assert [flat_of(*row) for row in zip(*columns, strict=True)] == trained(advantages=False)
    assert [one + two for one, two in zip(output["prompt_ids"], output["completion_ids"], strict=True)] == [
        chain.token_ids.tolist() for chain in CHAINS
    ]


def openrlhf() -> None:
    experience = run("OpenRLHF")["experience"]
    assert dtypes(experience) == {
        "sequences": "int64(5, 8)", "attention_mask": "int64(5, 8)", "action_mask": "int64(5, 7)",
        "rollout_log_probs": "float32(5, 7)", "advantages": "float32(5, 7)",
    }  # fmt: skip
    batch = arrays(experience)
    # Action t is what follows token t.
    actions = np.roll(batch["sequences"], -1, axis=1)[:, :-1]
    assert rows_of(actions, batch["rollout_log_probs"], batch["action_mask"], batch["advantages"]) == trained()


def prime_rl() -> None:
    samples = run("prime-rl")["samples"]
    assert len(samples) == 5
    for sample, chain, reward, want in zip(samples, CHAINS, REWARDS, trained(), strict=True):
        [channel] = sample["advantages"]
        assert flat_of(sample["token_ids"], sample["logprobs"], channel["mask"], channel["values"]) == want
        assert sample["token_ids"] == chain.token_ids.tolist()
        assert len(sample["temperatures"]) == len(sample["mask"]) == len(channel["values"]) == len(chain)
        assert sample["mask"] == channel["mask"]
        assert sample["reward"] == reward


def slime() -> None:
    samples = run("slime")["samples"]
    for sample, chain, reward, want in zip(samples, CHAINS, REWARDS, trained(advantages=False), strict=True):
        response = sample["tokens"][-sample["response_length"] :]
        assert flat_of(response, sample["rollout_log_probs"], sample["loss_mask"]) == want
        assert sample["tokens"] == chain.token_ids.tolist()
        assert sample["reward"] == reward
    assert samples[0]["weight_versions"] == ["None", "2"]


def tinker() -> None:
    data = run("tinker")["data"]
    assert len(data) == 5
    for datum, chain, want in zip(data, CHAINS, trained(), strict=True):
        inputs = datum["loss_fn_inputs"]
        assert [array.dtype for array in inputs.values()] == [np.int64, np.float32, np.float32]
        found = flat_of(inputs["target_tokens"], inputs["logprobs"], inputs["advantages"] != 0, inputs["advantages"])
        assert found == want
        assert datum["model_input"] == chain.token_ids.tolist()[:-1]
        assert inputs["target_tokens"].tolist() == chain.token_ids.tolist()[1:]


def torchtitan() -> None:
    microbatch = run("torchtitan")["batch"]
    assert dtypes(microbatch) == {
        "token_ids": "int64(4, 9)", "labels": "int64(4, 9)", "positions": "int64(4, 9)",
        "generator_logprobs": "float32(4, 9)", "loss_mask": "bool(4, 9)", "advantages": "float32(4, 9)",
    }  # fmt: skip
    batch = arrays(microbatch)
    names = ("labels", "generator_logprobs", "loss_mask", "advantages")
    found = [token for row in rows_of(*(batch[name] for name in names)) for token in row]
    assert sorted(found) == sorted(token for chain in trained() for token in chain)
    # Positions start again with each chain, and a label is the token after.
    for ids, labels, positions in zip(batch["token_ids"], batch["labels"], batch["positions"], strict=True):
        for at in range(SEQ_LEN - 1):
            if positions[at + 1] == positions[at] + 1:
                assert ids[at + 1] == labels[at]
    there = batch["token_ids"] != PAD
    assert sorted(zip(batch["token_ids"][there].tolist(), batch["positions"][there].tolist(), strict=True)) == sorted(
        (token, place) for chain in CHAINS for place, token in enumerate(chain.token_ids.tolist()[:-1])
    )


def megatron() -> None:
    batch = run("Megatron Core")["batch"]
    assert dtypes(batch) == {
        "tokens": "int64(1, 24)", "labels": "int64(1, 24)", "position_ids": "int64(1, 24)",
        "loss_mask": "float32(1, 24)", "cu_seqlens": "int32(6,)", "max_seqlen": "int32()",
    }  # fmt: skip
    places = list(itertools.pairwise(batch["cu_seqlens"].tolist()))
    assert max(end - start for start, end in places) == batch["max_seqlen"] == 7
    for (start, end), chain, want in zip(places, CHAINS, trained(), strict=True):
        labels, mask = batch["labels"][0, start:end], batch["loss_mask"][0, start:end]
        assert labels[mask == 1].tolist() == [token for token, _, _ in want]
        assert batch["tokens"][0, start:end].tolist() == chain.token_ids.tolist()[:-1]
        assert batch["position_ids"][0, start:end].tolist() == list(range(end - start))


READERS: dict[str, list[Callable[[], None]]] = {
    "verl": [verl, verl_agent_loop],
    "NeMo-RL": [nemo_rl],
    "SkyRL": [skyrl, skyrl_tensors],
    "TRL": [trl],
    "OpenRLHF": [openrlhf],
    "prime-rl": [prime_rl],
    "slime": [slime],
    "tinker": [tinker],
    "torchtitan": [torchtitan],
    "Megatron Core": [megatron],
}


@pytest.mark.parametrize("read", [read for readers in READERS.values() for read in readers])
def test_every_trained_token_is_read_back(read: Callable[[], None]) -> None:
    read()


def test_each_recipe_is_read() -> None:
    assert {name: len(code) for name, code in recipes().items()} == {
        name: len(found) for name, found in READERS.items()
    }


def test_the_chains_are_of_all_kinds() -> None:
    assert [len(chain) for chain in CHAINS] == [7, 8, 2, 8, 4]
    assert [len(tokens) for tokens in trained()] == [3, 2, 1, 4, 1]
