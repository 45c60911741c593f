"""Chains as flat and padded arrays."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from support.factories import call, make_entry
from tokenrecords import Chain, PackedBatch, build_chains, pack_chains
from tokenrecords.training import packing


def chain(length: int, rollout: str = "r", start: int = 0) -> Chain:
    """A chain of `length` ids from `start` on; the last two were generated."""
    ids = list(range(start, start + length))
    (built,) = build_chains([call("c", ids[:-2], ids[-2:], rollout_id=rollout)]).chains
    return built


def lengths(batch: PackedBatch) -> list[list[int]]:
    """The chains' lengths in each bin."""
    each = np.diff(batch.cu_seqlens).tolist()
    return [each[a:b] for a, b in zip(batch.bin_offsets[:-1], batch.bin_offsets[1:], strict=True)]


def test_chains_stand_one_after_the_other() -> None:
    batch = pack_chains(iter([chain(3), chain(4, "s", 10)]))
    assert batch.input_ids.tolist() == [0, 1, 2, 10, 11, 12, 13]
    assert batch.loss_mask.tolist() == [False, True, True, False, False, True, True]
    assert batch.log_probs.tolist() == [0.0, -0.5, -0.625, 0.0, 0.0, -0.5, -0.625]
    assert batch.position_ids.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert batch.cu_seqlens.tolist() == [0, 3, 7]
    assert batch.sequence_index.tolist() == [0, 1]
    assert (batch.rollout_ids, batch.chain_ids) == (["r", "s"], ["main", "main"])
    assert batch.bin_offsets.tolist() == [0, 2]
    assert len(batch) == 2


@pytest.mark.parametrize("chains", [[], [chain(3)]])
@pytest.mark.parametrize("max_tokens", [None, 8])
def test_dtypes_hold_whatever_there_is(chains: list[Chain], max_tokens: int | None) -> None:
    batch = pack_chains(chains, max_tokens=max_tokens)
    dtypes = {name: array.dtype.name for name, array in vars(batch).items() if isinstance(array, np.ndarray)}
    assert dtypes == {
        "input_ids": "int64",
        "loss_mask": "bool",
        "log_probs": "float32",
        "position_ids": "int64",
        "cu_seqlens": "int32",
        "sequence_index": "int32",
        "prompt_lengths": "int32",
        "bin_offsets": "int32",
        "truncated": "int64",
    }
    assert all(array.flags.c_contiguous and array.flags.writeable and array.ndim == 1 for array in vars(batch).values()
               if isinstance(array, np.ndarray))  # fmt: skip
    assert batch.cu_seqlens[0] == batch.bin_offsets[0] == 0
    assert len(batch.bin_offsets) == 1 + bool(chains)


def test_the_arrays_are_new() -> None:
    one = chain(3)
    batch = pack_chains([one])
    batch.loss_mask[:] = False
    batch.input_ids[:] = 9
    assert one.loss_mask.tolist() == [False, True, True]
    assert one.token_ids.tolist() == [0, 1, 2]


def test_bins_are_filled_first_fit_decreasing() -> None:
    batch = pack_chains([chain(n) for n in (3, 7, 4, 6, 3)], max_tokens=10)
    assert lengths(batch) == [[7, 3], [6, 4], [3]]
    assert batch.sequence_index.tolist() == [1, 0, 3, 2, 4]
    assert [len(chain(n)) for n in (3, 7)] == [3, 7]


def test_each_chain_goes_into_the_first_bin_with_room() -> None:
    # Best fit puts the 2 beside the two 4s, next, last and worst fit beside the third 4, and unsorted it is first.
    assert lengths(pack_chains([chain(n) for n in (2, 4, 4, 4, 7)], max_tokens=10)) == [[7, 2], [4, 4], [4]]


def test_no_bin_is_too_full_and_no_two_could_be_one() -> None:
    rng = np.random.default_rng(7)
    sizes = rng.integers(2, 60, 300)
    batch = pack_chains([chain(int(size), start=n) for n, size in enumerate(sizes)], max_tokens=64)
    fill = [sum(each) for each in lengths(batch)]
    assert max(fill) <= 64
    assert sum(sorted(fill)[:2]) > 64
    assert sorted(batch.sequence_index.tolist()) == list(range(300))
    starts = batch.input_ids[batch.cu_seqlens[:-1]]
    assert starts.tolist() == batch.sequence_index.tolist()
    assert np.diff(batch.cu_seqlens).tolist() == sizes[batch.sequence_index].tolist()


def test_a_chain_that_is_too_long() -> None:
    chains = [chain(3), chain(9, "s")]
    with pytest.raises(ValueError, match=r"chains\[1\] \('main' of rollout 's'\) has 9 tokens, max_tokens is 8"):
        pack_chains(chains, max_tokens=8)
    batch = pack_chains(chains, max_tokens=8, too_long="truncate")
    assert lengths(batch) == [[8], [3]]
    assert lengths(pack_chains([chain(8)], max_tokens=8)) == [[8]]
    assert batch.input_ids[:8].tolist() == list(range(8))
    assert batch.loss_mask[:8].tolist() == [False] * 7 + [True]
    assert batch.log_probs[:8].tolist() == [0.0] * 7 + [-0.5]


def test_the_dtype_of_the_ids() -> None:
    assert pack_chains([chain(3)], dtype="uint8").input_ids.dtype == np.uint8
    with pytest.raises(ValueError, match=r"chains\[1\].token_ids\[56\] is 256: it does not fit uint8"):
        pack_chains([chain(3), chain(80, start=200)], dtype=np.uint8)
    wide = dataclasses.replace(chain(3), token_ids=np.array([0, 1, 2**40]))
    with pytest.raises(ValueError, match=rf"^chains\[0\].token_ids\[2\] is {2**40}: it does not fit int32$"):
        pack_chains([wide], dtype=np.int32)
    huge = dataclasses.replace(chain(3), token_ids=[0, 2**64, 2])
    with pytest.raises(ValueError, match=rf"^chains\[0\].token_ids\[1\] is {2**64}: it does not fit int64$"):
        pack_chains([huge])
    with pytest.raises(TypeError, match="dtype is float32: token ids need an integer dtype"):
        pack_chains([], dtype=np.float32)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"max_tokens": 0}, ValueError, "max_tokens is 0: it must be at least 1"),
        ({"max_tokens": 1.5}, TypeError, "^max_tokens is 1.5: an integer is needed, got float$"),
        ({"too_long": "cut"}, ValueError, "too_long is 'cut'"),
    ],
)
def test_options_are_checked(options: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        pack_chains([], **options)


def test_offsets_that_int32_can_not_count_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenrecords.training.packing._MAX_OFFSET", 5)
    assert len(pack_chains([chain(5)])) == 1
    with pytest.raises(ValueError, match="6 tokens are more than int32 offsets can count"):
        pack_chains([chain(3), chain(3)])


def test_more_tokens_than_int32_counts_are_refused() -> None:
    # Ids that do not fit, so that nothing is packed where the number is not looked at.
    arrays = {"token_ids": np.int32(300), "loss_mask": np.False_, "log_probs": np.float64(0)}
    huge = dataclasses.replace(chain(3), **{name: np.broadcast_to(value, (2**30,)) for name, value in arrays.items()})
    with pytest.raises(ValueError, match=r"^2147483648 tokens are more than int32 offsets can count"):
        pack_chains([huge] * 2, dtype="uint8", shared="each")


def test_a_log_prob_beyond_float32_is_infinite_there() -> None:
    one = dataclasses.replace(chain(2), log_probs=np.array([-0.5, -1e300]))
    assert pack_chains([one]).log_probs.tolist() == [-0.5, float("-inf")]


@pytest.mark.parametrize("side", ["right", "left"])
def test_rows(side: Any) -> None:
    rows = pack_chains([chain(2), chain(4, start=10)]).padded(99, side=side, multiple_of=3)
    pad = (lambda values: [*values, *[0] * (6 - len(values))]) if side == "right" else None
    pad = pad or (lambda values: [*[0] * (6 - len(values)), *values])
    assert rows.attention_mask.tolist() == [pad([True] * 2), pad([True] * 4)]
    assert rows.loss_mask.tolist() == [pad([True, True]), pad([False, False, True, True])]
    assert rows.log_probs.tolist() == [pad([-0.5, -0.625]), pad([0.0, 0.0, -0.5, -0.625])]
    assert rows.position_ids.tolist() == [pad([0, 1]), pad([0, 1, 2, 3])]
    assert rows.input_ids[rows.attention_mask].tolist() == [0, 1, 10, 11, 12, 13]
    assert set(rows.input_ids[~rows.attention_mask].tolist()) == {99}
    assert rows.sequence_index.tolist() == [0, 1]
    assert (rows.attention_mask.dtype, rows.loss_mask.dtype, rows.log_probs.dtype) == (bool, bool, np.float32)


def test_the_length_of_rows() -> None:
    batch = pack_chains([chain(2), chain(4)])
    assert batch.padded(0).input_ids.shape == (2, 4)
    assert batch.padded(0, length=5, multiple_of=4).input_ids.shape == (2, 8)
    assert pack_chains([]).padded(0).input_ids.shape == (0, 0)
    for options, message in (
        ({"length": 3}, r"^length is 3: chains\[1\] \('main' of rollout 'r'\) has 4 tokens$"),
        ({"multiple_of": 0}, "multiple_of is 0"),
        ({"side": "middle"}, "side is 'middle'"),
    ):
        with pytest.raises(ValueError, match=message):
            batch.padded(0, **options)
    for pad_id in (-1, 256):
        with pytest.raises(ValueError, match=f"pad_id is {pad_id}: it does not fit uint8"):
            pack_chains([chain(2)], dtype="uint8").padded(pad_id)
    for pad_id in (0, 255):
        rows = pack_chains([chain(2)], dtype="uint8").padded(pad_id, length=3)
        assert rows.input_ids.tolist() == [[0, 1, pad_id]]


def test_what_is_no_chain() -> None:
    build = build_chains([make_entry(parent_resolution="root")])
    for wrong in (build, None):
        with pytest.raises(TypeError, match=rf"^chains\[1\] is {type(wrong).__name__}: a Chain is needed"):
            pack_chains([build.main, wrong])
    with pytest.raises(TypeError, match=r"^pad_id is None"):
        pack_chains([build.main]).padded(None)


@pytest.mark.parametrize(
    ("field", "change", "error", "message"),
    [
        ("loss_mask", lambda mask: mask[:2], ValueError, "has 2 values: 4 are needed, one"),
        (
            "loss_mask",
            lambda mask: np.append(mask, True),
            ValueError,
            "has 5 values: 4 are needed, one",
        ),
        ("log_probs", lambda values: values[1:], ValueError, "has 3 values: 4 are needed, one for each token id"),
        (
            "token_ids",
            lambda ids: ids.reshape(2, 2),
            ValueError,
            r"is an array of shape \(2, 2\): one dimension",
        ),
        ("loss_mask", lambda mask: mask.reshape(4, 1), ValueError, r"is an array of shape \(4, 1\): one dimension is"),
        (
            "log_probs",
            lambda values: values[None],
            ValueError,
            r"is an array of shape \(1, 4\): one dimension",
        ),
        ("token_ids", lambda ids: ids * 1.0, TypeError, "is an array of dtype float64: token ids must be integers"),
        ("loss_mask", lambda mask: mask * 0.5, TypeError, "is an array of dtype float64: a mask must hold 0 and 1"),
        ("loss_mask", lambda mask: mask + 1, ValueError, ".*: a mask must hold 0 and 1"),
        (
            "log_probs",
            lambda values: values + 1j,
            TypeError,
            "is an array of dtype complex128: log-probs must be",
        ),
        ("log_probs", lambda values: values > 0, TypeError, "is an array of dtype bool: log-probs must be float"),
        ("log_probs", lambda values: ["x"] * len(values), TypeError, ".*: log-probs must be numbers, got str"),
    ],
)
@pytest.mark.parametrize("options", [{}, {"max_tokens": 9}, {"shared": "each"}])
def test_arrays_of_a_chain_that_differ_are_refused(
    field: str, change: Any, error: type[Exception], message: str, options: dict[str, Any]
) -> None:
    wrong = chain(4)
    wrong = dataclasses.replace(wrong, **{field: change(getattr(wrong, field))})
    place = "" if message.startswith(".*") else rf"^chains\[1\]\.{field} "
    with pytest.raises(error, match=place + message) as caught:
        pack_chains([chain(3), wrong], **options)
    assert f"chains[1].{field}" in str(caught.value)


def test_arrays_of_other_holders_and_dtypes_are_taken() -> None:
    one = chain(4)
    other = dataclasses.replace(
        one,
        token_ids=one.token_ids.astype(">u8")[::1],
        loss_mask=one.loss_mask.astype(int).tolist(),
        log_probs=one.log_probs.astype(np.float16),
    )
    ours, theirs = pack_chains([other]), pack_chains([one])
    for name in ("input_ids", "loss_mask", "log_probs"):
        a, b = getattr(ours, name), getattr(theirs, name)
        assert (a.dtype, a.tolist()) == (b.dtype, b.tolist())


def test_a_mask_of_small_integers_holds_0_and_1() -> None:
    one = chain(3)
    assert pack_chains([dataclasses.replace(one, loss_mask=one.loss_mask.view(np.uint8))]).loss_mask.sum() == 2
    with pytest.raises(ValueError, match=r"^chains\[0\].loss_mask\[1\] is 2: a mask must hold 0 and 1"):
        pack_chains([dataclasses.replace(one, loss_mask=np.array([0, 2, 1], np.uint8))])


def test_masked_arrays_are_refused() -> None:
    one = chain(3)
    for name in ("token_ids", "loss_mask", "log_probs"):
        held = np.ma.masked_array(getattr(one, name), [0, 1, 0])
        with pytest.raises(TypeError, match=rf"^chains\[0\].{name} is a masked array"):
            pack_chains([dataclasses.replace(one, **{name: held})])


def test_padding_is_0_on_the_right_where_nothing_is_said() -> None:
    rows = pack_chains([chain(3, start=5), chain(2, start=7)]).padded()
    assert rows.input_ids.tolist() == [[5, 6, 7], [7, 8, 0]]


def test_layouts_are_made_of_arrays_with_gaps_too() -> None:
    batch = pack_chains([chain(3, start=5), chain(4, start=20)])
    wide = np.stack([batch.input_ids, -batch.input_ids], axis=1)
    other = dataclasses.replace(batch, input_ids=wide[:, 0])
    assert other.padded().input_ids.tolist() == batch.padded().input_ids.tolist()
    assert other.next_token().labels.tolist() == batch.next_token().labels.tolist()


def test_any_room_is_room() -> None:
    for room in (2**31, 2**63, 2**200, np.uint64(2**63)):
        batch = pack_chains([chain(3), chain(5, "s")], max_tokens=room)
        assert lengths(batch) == [[5, 3]]


@pytest.mark.parametrize("name", ["pad_id", "length", "multiple_of"])
def test_what_is_no_integer_is_named(name: str) -> None:
    batch = pack_chains([chain(3)])
    for value, kind in ((1.5, "float"), ("1", "str"), (np.float64(1), "float64")):
        with pytest.raises(TypeError, match=rf"^{name} is .*: an integer is needed, got {kind}$"):
            batch.padded(**{"pad_id": 0, name: value})
    assert batch.padded(np.int64(7), length=np.uint8(4)).input_ids.tolist() == [[0, 1, 2, 7]]


def test_a_chain_that_shares_calls_keeps_its_loss_once() -> None:
    first = call("a", [1], [2])
    build = build_chains([first, call("b", [1, 2, 3], [4], "a"), call("c", [1, 2, 5], [6], "a")])
    once = pack_chains(build.chains)
    each = pack_chains(build.chains, shared="each")
    assert once.loss_mask.tolist() == [False, True, False, True, False, False, False, True]
    assert each.loss_mask.tolist() == [False, True, False, True, False, True, False, True]


class Counted(int):
    """A length that counts how often room is compared with it."""

    compared = 0

    def __le__(self, room: int) -> bool:
        type(self).compared += 1
        return super().__le__(room)

    __gt__ = None  # the other way to ask


def test_the_first_bin_with_room_is_found_without_looking_into_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "compared", 0)
    rng = np.random.default_rng(3)
    sizes = rng.integers(1, 100, 1_000).tolist()
    bins = packing._first_fit_decreasing([Counted(size) for size in sizes], 100)
    assert 1_000 < Counted.compared <= 1_000 * 10
    want: list[list[int]] = []
    for place in sorted(range(1_000), key=lambda place: -sizes[place]):
        fitting = (bin_ for bin_ in want if sum(sizes[other] for other in bin_) + sizes[place] <= 100)
        found = next(fitting, None)
        if found is None:
            want.append([place])
        else:
            found.append(place)
    assert bins == want
