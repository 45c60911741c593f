"""What holds for the chains of any rollout."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from support.factories import as_arrays, call, delta
from tokenrecords import ChainBuild, TokenEntry, build_chains, expand_deltas, pack_chains, verify

if TYPE_CHECKING:
    import random

IDS = st.lists(st.integers(0, 3), max_size=3)


@st.composite
def rollouts(draw: Any, *, sound: bool = False) -> tuple[list[TokenEntry], str | None]:
    """Records of one rollout and its terminal call. Few ids and short sequences, so that much happens by chance."""
    entries: list[TokenEntry] = []
    wholes: dict[str, list[int]] = {}
    for number in range(draw(st.integers(0, 8))):
        parent = draw(st.sampled_from([None, *wholes]))
        again = draw(st.sampled_from([None, *entries])) if draw(st.booleans()) else None
        if again is not None and not again.prompt_is_delta:  # a retry
            parent, prompt = again.parent_call_id if again.parent_call_id in wholes else None, again.prompt_token_ids
        else:
            prompt = [*wholes.get(parent, []), *draw(IDS)]  # type: ignore[arg-type]
        generation = draw(IDS) if not sound else [*draw(IDS), 1]
        entry = call(f"c{draw(st.permutations('xyz'))[0]}{number}", list(prompt), generation, parent)
        entry.created_at = draw(st.sampled_from([0.0, 1.0, float(number)]))
        wholes[entry.model_call_id] = [*prompt, *generation]
        if parent is not None and draw(st.booleans()) and prompt[: len(wholes[parent])] == wholes[parent]:
            entry = delta(entry, len(wholes[parent]))
        if not sound:
            entry = entry.model_copy(update=draw(st.sampled_from(FAULTS)))
        entries += [entry] * draw(st.sampled_from([1, 1, 1, 2]))
    return entries, draw(st.sampled_from([None, "gone", *wholes]))


FAULTS: list[dict[str, Any]] = [
    *[{}] * 6,
    {"digest": None},
    {"cum_len": None},
    {"digest": "0" * 64},
    {"cum_len": 2},
    {"parent_call_id": "gone", "parent_resolution": None},
    {"parent_resolution": None},
    {"parent_resolution": "unresolved"},
    {"prompt_is_delta": True},
    {"generation_log_probs": [-1.0]},
]


def facts(build: ChainBuild) -> Any:
    chains = [
        (
            chain.chain_id,
            chain.call_ids,
            chain.token_ids.tolist(),
            chain.loss_mask.tolist(),
            chain.log_probs.tolist(),
            chain.spans.tolist(),
        )
        for chain in build.chains
    ]
    return chains, build.main and build.main.chain_id, build.quarantined, build.trainable, build.notes


@settings(max_examples=300, deadline=None)
@given(rollouts(), st.randoms(use_true_random=True))
def test_chains_of_any_rollout(rollout: tuple[list[TokenEntry], str | None], shuffle: random.Random) -> None:
    entries, terminal = rollout
    build = build_chains(entries, terminal_call_id=terminal)
    # Neither the order of the records nor what holds their ids matters.
    shuffled = shuffle.sample(entries, len(entries))
    assert facts(build_chains(as_arrays(shuffled), terminal_call_id=terminal)) == facts(build)

    full = {entry.model_call_id: entry for entry in reversed(expand_deltas(entries).entries)}
    for chain in build.chains:
        assert len(set(chain.call_ids)) == len(chain.call_ids)
        assert not set(chain.call_ids) & set(build.quarantined)
        # Each generated id has one place: the spans follow each other.
        edges = chain.spans.ravel().tolist()
        assert edges == sorted(edges)
        assert edges[-1] == len(chain.token_ids) == len(chain.loss_mask) == len(chain.log_probs)
        generated = np.zeros(len(chain), bool)
        for call_id, (start, end) in zip(chain.call_ids, chain.spans.tolist(), strict=True):
            entry = full[call_id]
            generated[start:end] = True
            assert chain.token_ids[:start].tolist() == list(entry.prompt_token_ids)
            assert chain.token_ids[start:end].tolist() == list(entry.generation_token_ids)
            assert chain.log_probs[start:end].tolist() == list(entry.generation_log_probs)
        assert (chain.loss_mask == generated).all()
        assert not chain.log_probs[~generated].any()
    names = [chain.chain_id for chain in build.chains]
    assert sorted(names) == sorted([*["main"] * bool(names), *(f"branch-{n}" for n in range(len(names) - 1))])
    assert (build.main is None) == (not names)
    assert build.notes.generated_tokens_delivered <= build.notes.generated_tokens_captured
    starts = {chain.call_ids[0] for chain in build.chains}
    assert len(starts) <= build.notes.roots


@settings(max_examples=150, deadline=None)
@given(rollouts(sound=True))
def test_sound_records_lose_nothing(rollout: tuple[list[TokenEntry], str | None]) -> None:
    entries, terminal = rollout
    report = verify(entries, vocab_size=4)
    assert report.findings == []
    build = build_chains(entries, terminal_call_id=terminal)
    assert build.notes.parent_link_failures == {}
    if terminal is None:
        reached = set(itertools.chain.from_iterable(chain.call_ids for chain in build.chains))
        below_quarantine = {entry.model_call_id for entry in entries} - reached - set(build.quarantined)
        parents = {entry.model_call_id: entry.parent_call_id for entry in entries}
        assert all(has_ancestor(call_id, parents, build.quarantined) for call_id in below_quarantine)


def has_ancestor(call_id: str, parents: dict[str, str | None], wanted: list[str]) -> bool:
    at: str | None = call_id
    while at is not None and at not in wanted:
        at = parents[at]
    return at is not None


@settings(max_examples=100, deadline=None)
@given(st.lists(rollouts(sound=True), max_size=3), st.sampled_from([None, 30]))
def test_packing_keeps_every_token(several: list[Any], max_tokens: int | None) -> None:
    chains = [chain for entries, _ in several for chain in build_chains(entries).chains]
    batch = pack_chains(chains, max_tokens=max_tokens, too_long="truncate", shared="each")
    assert sorted(batch.sequence_index.tolist()) == list(range(len(chains)))
    for place, (start, end) in enumerate(itertools.pairwise(batch.cu_seqlens.tolist())):
        chain = chains[batch.sequence_index[place]]
        assert end - start == min(len(chain), max_tokens or len(chain))
        for name in ("loss_mask", "log_probs"):
            assert getattr(batch, name)[start:end].tolist() == getattr(chain, name)[: end - start].tolist()
        assert batch.input_ids[start:end].tolist() == chain.token_ids[: end - start].tolist()
        assert batch.position_ids[start:end].tolist() == list(range(end - start))
    rows = batch.padded(9)
    assert rows.input_ids[rows.attention_mask].tolist() == batch.input_ids.tolist()
