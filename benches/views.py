"""The layouts of trainers against the best numpy that a user could write, by masks and by a loop over the chains."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from compare import Effort, Table, measure
from tokenrecords import Chain, PackedBatch, pack_chains

if TYPE_CHECKING:
    from collections.abc import Iterable

PAD = 0
SHAPES = {
    "2,048 x 8 to 128": (2_048, 8, 128),
    "256 x 256 to 4,096": (256, 256, 4_096),
    "16 x 16,384": (16, 16_384, 16_385),
}


def chains(count: int, least: int, below: int) -> list[Chain]:
    """Chains of one call, of which the last third was generated."""
    random = np.random.default_rng(0)
    made = []
    for number, length in enumerate(random.integers(least, below, count).tolist()):
        start = length - length // 3
        mask = np.arange(length) >= start
        made.append(
            Chain(
                rollout_id=f"r{number}",
                chain_id="main",
                call_ids=["c"],
                token_ids=random.integers(1, 151_936, length, np.int32),
                loss_mask=mask,
                log_probs=np.where(mask, -random.random(length), 0.0),
                spans=np.array([[start, length]]),
            )
        )
    return made


def views(effort: Effort) -> list[Table]:
    """How many times faster each layout is made."""
    table = Table(
        "views",
        "Layouts of packed chains: how many times faster than numpy",
        "layout, chains",
        {"masks/ours": "by masks", "loop/ours": "by a loop over the chains"},
    )
    for label, shape in SHAPES.items():
        batch = pack_chains(chains(*shape))
        values = np.random.default_rng(1).random(len(batch))
        ways: dict[str, tuple[Any, Any, Any]] = {
            "next_token": (lambda b: fields(b.next_token(), NEXT), next_by_masks, next_by_loop),
            "padded": (lambda b: fields(b.padded(PAD), ROWS), rows_by_masks, rows_by_loop),
            "prompt_response": (lambda b: fields(b.prompt_response(PAD), CUT), cut_by_masks, cut_by_loop),
            "per_token": tuple(partial(way, values=values) for way in (spread, spread_by_repeat, spread_by_loop)),
        }
        for name, (ours, masks, loop) in ways.items():
            times = measure(
                effort,
                {"ours": partial(ours, batch), "masks": partial(masks, batch), "loop": partial(loop, batch)},
                same=lambda a, b: len(a) == len(b) and all(map(np.array_equal, a, b)),
            )
            table.ratios(f"{name}, {label}", times)
    return [table]


NEXT = ("input_ids", "labels", "loss_mask", "log_probs", "position_ids", "cu_seqlens")
ROWS = ("input_ids", "attention_mask", "loss_mask", "log_probs", "position_ids")
CUT = ("prompts", "responses", "response_mask", "log_probs", "attention_mask", "position_ids")


def fields(view: Any, names: Iterable[str]) -> list[np.ndarray]:
    return [getattr(view, name) for name in names]


def next_by_masks(batch: PackedBatch) -> list[np.ndarray]:
    before, after = np.ones((2, len(batch.input_ids)), bool)
    before[batch.cu_seqlens[1:] - 1] = False
    after[batch.cu_seqlens[:-1]] = False
    return [
        batch.input_ids[before], batch.input_ids[after], batch.loss_mask[after], batch.log_probs[after],
        batch.position_ids[before], batch.cu_seqlens - np.arange(len(batch.cu_seqlens), dtype=np.int32),
    ]  # fmt: skip


def next_by_loop(batch: PackedBatch) -> list[np.ndarray]:
    places = list(itertools.pairwise(batch.cu_seqlens.tolist()))

    def joined(flat: np.ndarray, first: int, last: int) -> np.ndarray:
        return np.concatenate([flat[start + first : end + last] for start, end in places])

    return [
        joined(batch.input_ids, 0, -1), joined(batch.input_ids, 1, 0), joined(batch.loss_mask, 1, 0),
        joined(batch.log_probs, 1, 0), joined(batch.position_ids, 0, -1),
        batch.cu_seqlens - np.arange(len(batch.cu_seqlens), dtype=np.int32),
    ]  # fmt: skip


def rows_by_masks(batch: PackedBatch) -> list[np.ndarray]:
    lengths = np.diff(batch.cu_seqlens)
    there = np.arange(lengths.max()) < lengths[:, None]
    return [filled(there, batch.input_ids), there,
            *(filled(there, flat) for flat in (batch.loss_mask, batch.log_probs, batch.position_ids))]  # fmt: skip


def filled(there: np.ndarray, flat: np.ndarray) -> np.ndarray:
    rows = np.zeros(there.shape, flat.dtype)
    rows[there] = flat
    return rows


def rows_by_loop(batch: PackedBatch) -> list[np.ndarray]:
    shape = len(batch), int(np.diff(batch.cu_seqlens).max())
    flats = (batch.input_ids, np.ones(len(batch.input_ids), bool), batch.loss_mask, batch.log_probs, batch.position_ids)
    made = [np.zeros(shape, flat.dtype) for flat in flats]
    for row, (start, end) in enumerate(itertools.pairwise(batch.cu_seqlens.tolist())):
        for rows, flat in zip(made, flats, strict=True):
            rows[row, : end - start] = flat[start:end]
    return made


def cut_by_masks(batch: PackedBatch) -> list[np.ndarray]:
    lengths, prompts = np.diff(batch.cu_seqlens), batch.prompt_lengths
    left, right = prompts.max(), (lengths - prompts).max()
    places = np.arange(left + right)
    there = (places >= (left - prompts)[:, None]) & (places < (left - prompts + lengths)[:, None])
    ids, mask, log_probs, positions = (
        filled(there, flat) for flat in (batch.input_ids, batch.loss_mask, batch.log_probs, batch.position_ids)
    )
    return [ids[:, :left], ids[:, left:], mask[:, left:], log_probs[:, left:], there, positions]


def cut_by_loop(batch: PackedBatch) -> list[np.ndarray]:
    lengths, cuts = np.diff(batch.cu_seqlens), batch.prompt_lengths.tolist()
    left, right = max(cuts), int((lengths - batch.prompt_lengths).max())
    flats = (batch.input_ids, batch.loss_mask, batch.log_probs, np.ones(len(batch.input_ids), bool), batch.position_ids)
    made = [np.zeros((len(batch), left + right), flat.dtype) for flat in flats]
    for row, ((start, end), cut) in enumerate(zip(itertools.pairwise(batch.cu_seqlens.tolist()), cuts, strict=True)):
        for rows, flat in zip(made, flats, strict=True):
            rows[row, left - cut : left - cut + end - start] = flat[start:end]
    ids, mask, log_probs, there, positions = made
    return [ids[:, :left], ids[:, left:], mask[:, left:], log_probs[:, left:], there, positions]


def spread(batch: PackedBatch, values: np.ndarray) -> list[np.ndarray]:
    return [batch.per_token(values)]


def spread_by_repeat(batch: PackedBatch, values: np.ndarray) -> list[np.ndarray]:
    each = np.repeat(values[batch.sequence_index].astype(np.float32), np.diff(batch.cu_seqlens))
    return [np.where(batch.loss_mask, each, np.float32(0))]


def spread_by_loop(batch: PackedBatch, values: np.ndarray) -> list[np.ndarray]:
    made = np.zeros(len(batch.input_ids), np.float32)
    places = itertools.pairwise(batch.cu_seqlens.tolist())
    for place, (start, end) in zip(batch.sequence_index.tolist(), places, strict=True):
        made[start:end][batch.loss_mask[start:end]] = values[place]
    return [made]
