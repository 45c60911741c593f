"""Packed chains in the layouts of trainers, against an oracle that goes token by token."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.factories import bare, call
from support.holders import Array, DLPack
from tokenrecords import Chain, PackedBatch, build_chains, pack_chains

PAD = 99


def chain(prompt: list[int], *turns: tuple[list[int], list[int]], rollout: str = "r") -> Chain:
    """A chain of calls: each generates the ids of a turn, of which its mask takes some out; 77 stands between two."""
    calls, sequence = [], prompt
    for turn, (generated, mask) in enumerate(turns):
        parent = f"c{turn - 1}" if turn else None
        calls.append(call(f"c{turn}", sequence, generated, parent, rollout_id=rollout, generation_loss_mask=mask))
        sequence = [*sequence, *generated, 77]
    [built] = build_chains(calls).chains
    return built


def bare_chain(ids: list[int], mask: list[int], prompt: int) -> Chain:
    """A chain that nobody generated, or of tokens that nobody's call can have."""
    spans = np.array([[prompt, len(ids)]] if prompt < len(ids) else np.empty((0, 2)), np.int64)
    carried = np.array(mask, bool)
    log_probs = np.where(carried, -0.25 * np.arange(1, len(ids) + 1), 0.0)
    return Chain("b", "main", ["c"] * len(spans), np.array(ids, np.int32), carried, log_probs, spans)


@st.composite
def chains(draw: st.DrawFn, least: int = 0) -> list[Chain]:
    made = []
    for number in range(draw(st.integers(0, 5))):
        size = draw(st.integers(least, 9))
        prompt = draw(st.integers(least, size))
        ids = draw(st.lists(st.integers(0, 120), min_size=size, max_size=size))
        mask = [0] * prompt + draw(st.lists(st.integers(0, 1), min_size=size - prompt, max_size=size - prompt))
        made.append(dataclasses.replace(bare_chain(ids, mask, prompt), rollout_id=f"r{number}"))
    return made


OPTIONS = st.fixed_dictionaries(
    {"max_tokens": st.sampled_from([None, 9, 20]), "dtype": st.sampled_from(["int32", "int64", "uint8", ">i8"])}
)


def tokens_of(one: Chain) -> list[tuple[int, bool, float, int]]:
    """Id, loss, log-prob and place of each token."""
    return list(
        zip(one.token_ids.tolist(), one.loss_mask.tolist(), one.log_probs.tolist(), range(len(one)), strict=True)
    )


def padded_right(values: list[Any], width: int, padding: Any = 0) -> list[Any]:
    return values + [padding] * (width - len(values))


def padded_left(values: list[Any], width: int, padding: Any = 0) -> list[Any]:
    return [padding] * (width - len(values)) + values


def arrays_of(batch: Any) -> dict[str, np.ndarray[Any, Any]]:
    held = batch._asdict() if hasattr(batch, "_asdict") else vars(batch)
    return {name: value for name, value in held.items() if isinstance(value, np.ndarray)}


def torch_takes(batch: Any) -> bool:
    """True if `torch.from_numpy` takes each array without a copy or a warning."""
    return all(
        array.flags.writeable and array.dtype.isnative and all(stride >= 0 for stride in array.strides)
        for array in arrays_of(batch).values()
    )


@given(given_chains=chains(least=1), options=OPTIONS)
def test_next_token(given_chains: list[Chain], options: dict[str, Any]) -> None:
    batch = pack_chains(given_chains, **options)
    view = batch.next_token()
    packed = [tokens_of(given_chains[place]) for place in batch.sequence_index.tolist()]
    pairs = [pair for each in packed for pair in itertools.pairwise(each)]
    assert view.input_ids.tolist() == [now[0] for now, _ in pairs]
    assert view.labels.tolist() == [then[0] for _, then in pairs]
    assert view.loss_mask.tolist() == [then[1] for _, then in pairs]
    assert view.log_probs.tolist() == [then[2] for _, then in pairs]
    assert view.position_ids.tolist() == [now[3] for now, _ in pairs]
    assert np.diff(view.cu_seqlens).tolist() == [len(each) - 1 for each in packed]
    assert view.cu_seqlens[0] == 0
    assert view.sequence_index.tolist() == batch.sequence_index.tolist()
    assert torch_takes(view)
    assert {name: array.dtype.name for name, array in arrays_of(view).items()} == {
        "input_ids": batch.input_ids.dtype.name, "labels": batch.input_ids.dtype.name, "loss_mask": "bool",
        "log_probs": "float32", "position_ids": "int64", "cu_seqlens": "int32", "sequence_index": "int32",
    }  # fmt: skip


@given(given_chains=chains(), options=OPTIONS, more=st.none() | st.tuples(st.integers(0, 3), st.integers(0, 3)))
def test_prompt_response(given_chains: list[Chain], options: dict[str, Any], more: tuple[int, int] | None) -> None:
    batch = pack_chains(given_chains, **options)
    packed = [given_chains[place] for place in batch.sequence_index.tolist()]
    cuts = [int(each.spans[0, 0]) if len(each.spans) else len(each) for each in packed]
    before = [tokens_of(each)[:cut] for each, cut in zip(packed, cuts, strict=True)]
    after = [tokens_of(each)[cut:] for each, cut in zip(packed, cuts, strict=True)]
    left, right = (max(map(len, side), default=0) + (more[n] if more else 0) for n, side in enumerate((before, after)))
    lengths = {"prompt_length": left, "response_length": right} if more else {}
    view = batch.prompt_response(PAD, **lengths)
    assert view.prompts.shape == (len(packed), left)
    assert view.responses.shape == (len(packed), right)
    for row, (prompt, response) in enumerate(zip(before, after, strict=True)):
        ids = [token[0] for token in prompt], [token[0] for token in response]
        assert view.prompts[row].tolist() == padded_left(ids[0], left, PAD)
        assert view.responses[row].tolist() == padded_right(ids[1], right, PAD)
        assert view.response_mask[row].tolist() == padded_right([token[1] for token in response], right)
        assert view.log_probs[row].tolist() == padded_right([token[2] for token in response], right)
        there = padded_left([True] * len(prompt), left) + padded_right([True] * len(response), right)
        assert view.attention_mask[row].tolist() == there
        places = [token[3] for token in prompt], [token[3] for token in response]
        assert view.position_ids[row].tolist() == padded_left(places[0], left) + padded_right(places[1], right)
        assert view.input_ids[row].tolist() == view.prompts[row].tolist() + view.responses[row].tolist()
    assert view.sequence_index.tolist() == batch.sequence_index.tolist()
    assert torch_takes(view)
    ids = batch.input_ids.dtype.name
    assert {name: array.dtype.name for name, array in arrays_of(view).items()} == {
        "input_ids": ids, "prompts": ids, "responses": ids, "response_mask": "bool", "log_probs": "float32",
        "attention_mask": "bool", "position_ids": "int64", "sequence_index": "int32",
    }  # fmt: skip


@given(given_chains=chains(), options=OPTIONS, side=st.sampled_from(["left", "right"]), more=st.integers(0, 3))
def test_rows_of_whole_chains(given_chains: list[Chain], options: dict[str, Any], side: Any, more: int) -> None:
    batch = pack_chains(given_chains, **options)
    packed = [tokens_of(given_chains[place]) for place in batch.sequence_index.tolist()]
    width = max(map(len, packed), default=0) + more
    view = batch.padded(PAD, length=width, side=side)
    pad = padded_left if side == "left" else padded_right
    for row, tokens in enumerate(packed):
        assert view.input_ids[row].tolist() == pad([token[0] for token in tokens], width, PAD)
        assert view.loss_mask[row].tolist() == pad([token[1] for token in tokens], width)
        assert view.log_probs[row].tolist() == pad([token[2] for token in tokens], width)
        assert view.position_ids[row].tolist() == pad([token[3] for token in tokens], width)
        assert view.attention_mask[row].tolist() == pad([True for _ in tokens], width)
    assert view.input_ids.shape == (len(packed), width)
    assert torch_takes(view)


@given(given_chains=chains(), options=OPTIONS, kind=st.sampled_from([list, tuple, np.array, np.float32]))
def test_a_number_for_each_chain(given_chains: list[Chain], options: dict[str, Any], kind: Any) -> None:
    batch = pack_chains(given_chains, **options)
    values = [1.5 + number for number in range(len(given_chains))]
    by_rollout = {f"r{number}": value for number, value in enumerate(values)}
    want = [
        by_rollout[rollout] if token[1] else 0.0
        for rollout, place in zip(batch.rollout_ids, batch.sequence_index.tolist(), strict=True)
        for token in tokens_of(given_chains[place])
    ]
    spread = batch.per_token(kind(values))
    assert spread.tolist() == want
    assert spread.dtype == np.float32
    assert spread.shape == batch.loss_mask.shape
    negative = batch.per_token([-value for value in values])
    assert not np.signbit(negative[~batch.loss_mask]).any()
    for rows, mask in ((view, view.loss_mask) for view in (batch.padded(PAD), batch.padded(PAD, side="left"))):
        assert rows.per_token(kind(values)).shape == mask.shape
        assert rows.per_token(kind(values))[mask].tolist() == [number for number in want if number]
        assert not rows.per_token(kind(values))[~mask].any()
    cut = batch.prompt_response(PAD)
    assert cut.per_token(kind(values)).shape == cut.response_mask.shape
    assert cut.per_token(kind(values))[cut.response_mask].tolist() == [number for number in want if number]
    assert not cut.per_token(kind(values))[~cut.response_mask].any()
    assert torch_takes(batch)


@given(given_chains=chains(least=1))
def test_a_number_for_each_chain_stands_at_its_labels(given_chains: list[Chain]) -> None:
    batch = pack_chains(given_chains, max_tokens=12)
    view = batch.next_token()
    values = [1.5 + number for number in range(len(given_chains))]
    spread = view.per_token(values)
    assert spread.dtype == np.float32
    firsts = batch.cu_seqlens[:-1]
    assert spread.tolist() == np.delete(batch.per_token(values), firsts).tolist()


@given(given_chains=chains())
def test_a_chain_is_split_before_its_first_generated_token(given_chains: list[Chain]) -> None:
    for one in given_chains:
        split = one.split()
        cut = int(one.spans[0, 0]) if len(one.spans) else len(one)
        assert split.prompt_ids.tolist() == one.token_ids.tolist()[:cut]
        assert split.response_ids.tolist() == one.token_ids.tolist()[cut:]
        assert split.response_mask.tolist() == one.loss_mask.tolist()[cut:]
        assert split.response_log_probs.tolist() == one.log_probs.tolist()[cut:]


def test_a_split_holds_views() -> None:
    one = chain([1, 2], ([3, 4, 5], [1, 0, 1]), ([6], [1]))
    split = one.split()
    assert split.prompt_ids.tolist() == [1, 2]
    assert split.response_ids.tolist() == [3, 4, 5, 77, 6]
    assert split.response_mask.tolist() == [True, False, True, False, True]
    assert split.response_log_probs.tolist() == [-0.5, 0.0, -0.75, 0.0, -0.5]
    assert np.shares_memory(split.prompt_ids, one.token_ids)
    assert np.shares_memory(split.response_ids, one.token_ids)
    assert np.shares_memory(split.response_mask, one.loss_mask)
    assert np.shares_memory(split.response_log_probs, one.log_probs)
    assert torch_takes(split)
    [swapped] = build_chains([bare("c", np.array([1], ">i4"), np.array([2], ">i4"))]).chains
    assert torch_takes(swapped.split())


def test_the_first_generated_token_may_carry_no_loss() -> None:
    one = chain([1, 2], ([3, 4], [0, 1]))
    assert one.prompt_length == 2
    assert one.split().response_mask.tolist() == [False, True]
    assert chain([1, 2], ([3, 4], [0, 0]), ([5], [1])).prompt_length == 2
    # Nor where an earlier chain trains on it.
    batch = pack_chains([one, dataclasses.replace(one, chain_id="branch-0")])
    assert batch.prompt_lengths.tolist() == [2, 2]
    assert batch.prompt_response(PAD).responses.tolist() == [[3, 4], [3, 4]]
    assert batch.prompt_response(PAD).response_mask.tolist() == [[False, True], [False, False]]


def test_no_loss_is_left_in_a_prompt() -> None:
    made = dataclasses.replace(bare_chain([5, 6, 7, 8], [0, 1, 0, 1], 4), spans=np.array([[3, 4]]))
    assert made.prompt_length == 1
    assert dataclasses.replace(made, loss_mask=np.zeros(4, bool), spans=np.array([[9, 12]])).prompt_length == 4
    assert pack_chains([made]).prompt_response(PAD).response_mask.tolist() == [[True, False, True]]


def test_what_is_left_of_a_truncated_chain() -> None:
    batch = pack_chains([chain([1, 2, 3], ([4, 5], [1, 1])), chain([1], ([4, 5], [1, 1]), rollout="s")],
                        max_tokens=2, too_long="truncate")  # fmt: skip
    assert batch.prompt_lengths.tolist() == [2, 1]
    view = batch.prompt_response(PAD)
    assert view.prompts.tolist() == [[1, 2], [PAD, 1]]
    assert view.responses.tolist() == [[PAD], [4]]
    assert batch.next_token().loss_mask.tolist() == [False, True]


@pytest.fixture
def batch() -> PackedBatch:
    return pack_chains([chain([1, 2], ([3], [1])), chain([1, 2, 3], ([4, 5], [1, 1]), rollout="s")], max_tokens=5)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"prompt_length": 2}, ValueError,
         "prompt_length is 2: chains[1] ('main' of rollout 's') has 3 tokens before its first generated one"),
        ({"response_length": 1}, ValueError,
         "response_length is 1: chains[1] ('main' of rollout 's') has 2 tokens from its first generated one"),
        ({"response_length": -1}, ValueError,
         "response_length is -1: chains[1] ('main' of rollout 's') has 2 tokens from its first generated one"),
        ({"prompt_length": 2.0}, TypeError, "prompt_length is 2.0: an integer is needed, got float"),
        ({"response_length": "3"}, TypeError, "response_length is '3': an integer is needed, got str"),
        ({"pad_id": None}, TypeError, "pad_id is None: where the tokenizer has no pad token, any id will do"),
        ({"pad_id": 2**63}, ValueError, "pad_id is 9223372036854775808: it does not fit int64"),
    ],
)  # fmt: skip
def test_lengths_and_padding_are_checked(
    batch: PackedBatch, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        batch.prompt_response(**{"pad_id": 0, **options})


ORDER = "one for each chain in the order in which pack_chains got them"


@pytest.mark.parametrize(
    ("values", "error", "message"),
    [
        ([1.0], ValueError, f"values has 1 numbers: 2 are needed, {ORDER}"),
        (np.zeros(3), ValueError, f"values has 3 numbers: 2 are needed, {ORDER}"),
        ([1.0, float("nan")], ValueError, "values[1] is nan: a finite number of float32 is needed"),
        ([-1e39, 1.0], ValueError, "values[0] is -1e+39: a finite number of float32 is needed"),
        (["a", "b"], TypeError, "values is ['a', 'b']: a number is needed for each chain"),
        ([[1.0], [2.0, 3.0]], TypeError, "values is [[1.0], [2.0, 3.0]]: a number is needed for each chain"),
        ([[1.0], [2.0]], TypeError, "values is [[1.0], [2.0]]: a number is needed for each chain"),
        ([None, 1.0], TypeError, "values is [None, 1.0]: a number is needed for each chain"),
        (1.0, TypeError, "values is 1.0: a number is needed for each chain"),
        (np.zeros((2, 1)), ValueError, "values is an array of shape (2, 1): one dimension is needed, got 2"),
    ],
)
def test_numbers_are_checked(batch: PackedBatch, values: Any, error: type[Exception], message: str) -> None:
    for layout in (batch, batch.next_token(), batch.padded(0), batch.prompt_response(0)):
        with pytest.raises(error, match=f"^{re.escape(message)}$"):
            layout.per_token(values)


def test_rewards_may_be_held_by_a_tensor(batch: PackedBatch) -> None:
    want = batch.per_token([1.5] * len(batch)).tolist()
    for hold in (Array, DLPack):
        assert batch.per_token(hold(np.full(len(batch), 1.5, np.float32))).tolist() == want


def test_rewards_may_be_bools_and_integers(batch: PackedBatch) -> None:
    assert batch.sequence_index.tolist() == [1, 0]
    assert batch.per_token([True, False]).tolist() == [0, 0, 0, 0, 0, 0, 0, 1]
    assert batch.per_token(np.array([2, -3])).tolist() == [0, 0, 0, -3, -3, 0, 0, 2]
    assert batch.next_token().per_token([1, 2]).tolist() == [0, 0, 2, 2, 0, 1]


def test_a_first_token_that_carries_loss_follows_none() -> None:
    nobody = bare_chain([], [], 0)
    alone = dataclasses.replace(bare_chain([5], [1], 0), rollout_id="s")
    for chains_ in ([alone], [nobody, bare_chain([1, 2], [0, 1], 1), alone]):
        message = f"the first token of chains[{len(chains_) - 1}] ('main' of rollout 's') carries loss: one before it"
        with pytest.raises(ValueError, match=f"^{re.escape(message)} is needed$"):
            pack_chains(chains_).next_token()
    assert pack_chains([nobody, bare_chain([1], [0], 1), nobody]).next_token().cu_seqlens.tolist() == [0, 0, 0, 0]


def test_an_empty_batch_has_every_layout() -> None:
    batch = pack_chains([])
    assert batch.next_token().cu_seqlens.tolist() == [0]
    assert batch.prompt_response(0, prompt_length=3, response_length=2).attention_mask.shape == (0, 5)
    assert batch.per_token([]).shape == (0,)
    for layout in (batch.next_token(), batch.padded(0), batch.prompt_response(0)):
        assert layout.per_token([]).size == 0
        assert torch_takes(layout)


def test_batches_are_told_apart_by_which_they_are(batch: PackedBatch) -> None:
    """Arrays have no equality that could be that of a batch."""
    batches = [batch, batch.padded(), batch.next_token(), batch.prompt_response(0), batch.padded()]
    assert len(set(batches)) == len(batches)
    assert len(set(build_chains([call("a", [1], [2])]).chains * 2)) == 1
