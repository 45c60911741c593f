"""What may be trained on: reasons, samples, conflicts, loss masks, and the loss of tokens that several chains hold."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from support.factories import as_arrays, call, conversation
from support.places import DOCS
from tokenrecords import Chain, TokenEntry, build_chains, pack_chains, read_jsonl, write_jsonl
from tokenrecords.training.chains import REASONS
from tokenrecords.training.loss import loss_once


def masks(chains: list[Chain]) -> list[list[int]]:
    return [chain.loss_mask.astype(int).tolist() for chain in chains]


def fork() -> list[TokenEntry]:
    return [call("a", [1, 2], [3, 4]), call("b", [1, 2, 3, 4, 5], [6], "a"), call("c", [1, 2, 3, 4, 8], [9], "a")]


def unresolved(entry: TokenEntry) -> TokenEntry:
    return entry.model_copy(update={"parent_call_id": None, "parent_resolution": "unresolved"})


def left_out(entry: TokenEntry) -> TokenEntry:
    return entry.model_copy(update={"model_call_id": "bad", "cum_len": "7"})


UNTRAINABLE = {
    "several_roots": ([call("a", [1], [2]), call("b", [5], [6])], ["several_roots", "several_chains"]),
    "several_chains": (fork(), ["several_chains"]),
    "unresolved_parents": ([unresolved(call("a", [1], [2]))], ["unresolved_parents"]),
    "a record left out": ([call("a", [1], [2]), left_out(call("b", [1], [2]))], ["unresolved_parents"]),
    "unresolved_retries": (
        [call("a", [1], [2]), call("b", [1, 2], [3], "a"), call("c", [1, 2], [4], "a")],
        ["unresolved_retries"],
    ),
    "nothing": ([], ["nothing_to_train"]),
    "all masked": ([call("a", [1], [2], generation_loss_mask=[0])], ["nothing_to_train"]),
    "call_conflict": ([call("a", [1], [2]), call("a", [1], [3])], ["unresolved_parents", "call_conflict"]),
}


@pytest.mark.parametrize(("entries", "reasons"), UNTRAINABLE.values(), ids=UNTRAINABLE)
def test_what_stands_against_training_is_said(entries: list[TokenEntry], reasons: list[str]) -> None:
    for held in (entries, as_arrays(entries)):
        build = build_chains(held)
        assert (build.reasons, build.trainable) == (reasons, False)


def test_with_a_terminal_call_only_its_chain_counts() -> None:
    entries = [*fork(), call("side", [50], [51])]
    build = build_chains(entries, terminal_call_id="b")
    assert (build.trainable, build.reasons, build.main.call_ids if build.main else None) == (True, [], ["a", "b"])
    assert build_chains(entries, terminal_call_id="gone").reasons == ["terminal_not_captured"]
    broken = [unresolved(call("x", [1], [2])), *fork()]
    assert build_chains(broken, terminal_call_id="x").reasons == ["terminal_broken"]
    masked = [call("a", [1], [2], generation_loss_mask=[0]), call("b", [1, 2, 5], [6], "a", generation_loss_mask=[0])]
    assert build_chains(masked, terminal_call_id="b").reasons == ["nothing_to_train"]
    # A retry beside it was decided.
    retried = [call("a", [1], [2]), call("b", [1, 2], [3], "a"), call("c", [1, 2], [4], "a")]
    assert build_chains(retried, terminal_call_id="c").reasons == []


def test_a_recovered_parent_stands_against_nothing() -> None:
    entries = [call("a", [1], [2]), call("b", [1, 2, 3], [4], "gone")]
    assert build_chains(entries).reasons == []


def test_reasons_come_in_their_order_and_are_all_told() -> None:
    entries = [*fork(), call("a", [1, 2], [3, 5]), call("d", [1, 2, 3, 4, 8], [7], "a"), call("e", [5], [6])]
    found = build_chains(entries).reasons
    assert found == ["several_roots", "several_chains", "unresolved_parents", "unresolved_retries", "call_conflict"]
    assert set(found) <= set(REASONS)


def test_samples_of_one_response_are_kept_side_by_side() -> None:
    samples = [call(f"s{k}", [1, 2], [40 + k], response_id="one") for k in range(3)]
    build = build_chains(samples)
    assert [chain.call_ids for chain in build.chains] == [["s0"], ["s1"], ["s2"]]
    assert (build.quarantined, build.notes.unresolved_retries) == ([], [])
    assert build.reasons == ["several_roots", "several_chains"]
    assert pack_chains(build.chains).loss_mask.sum() == 3
    # One sample goes on, and the others stay.
    build = build_chains([*samples, call("t", [1, 2, 41, 5], [6], "s1")])
    assert [chain.call_ids for chain in build.chains] == [["s0"], ["s2"], ["s1", "t"]]


def test_two_requests_of_several_samples_are_retries() -> None:
    samples = [call(f"{name}{k}", [1], [40 + k], response_id=name) for name in ("x", "y") for k in range(2)]
    build = build_chains(samples)
    assert build.quarantined == ["y0", "y1"]
    assert build.notes.unresolved_retries == ["x0", "x1", "y0", "y1"]
    build = build_chains([*samples, call("t", [1, 41, 5], [6], "y1")])
    assert (build.quarantined, build.notes.unresolved_retries) == (["x0", "x1"], [])
    build = build_chains(samples, terminal_call_id="y0")
    assert (build.quarantined, build.main.call_ids if build.main else None) == (["x0", "x1"], ["y0"])
    assert [chain.call_ids for chain in build.chains] == [["y0"], ["y1"]]


@pytest.mark.parametrize("response_id", [None, ""])
def test_calls_without_a_response_id_are_retries(response_id: str | None) -> None:
    build = build_chains([call(name, [1], [2], response_id=response_id) for name in "ab"])
    assert (build.quarantined, build.reasons) == (["b"], ["several_roots", "unresolved_retries"])


@pytest.mark.parametrize(
    "other",
    [
        {"generation_log_probs": [-0.9, -0.8]},
        {"generation_token_ids": [3, 5]},
        {"generation_loss_mask": [1, 0]},
        {"generation_log_probs": [float("nan"), -0.625]},
    ],
)
def test_a_chain_through_a_call_with_two_records_is_not_trainable(other: dict[str, Any]) -> None:
    one = call("c", [1, 2], [3, 4])
    two = call("c", [1, 2], [3, 4], **other)
    end = call("d", [1, 2, 3, 4, 5], [6], "c")
    for entries in ([one, two, end], [two, one, end]):
        for terminal in (None, "c", "d"):
            build = build_chains(entries, terminal_call_id=terminal)
            if build.main is not None and "c" in build.main.call_ids:
                assert "call_conflict" in build.reasons
            assert not build.trainable
    build = build_chains([one, two])
    assert build.main is not None
    assert build.main.log_probs.tolist() == [0.0, 0.0, -0.5, -0.625]
    assert build.notes.parent_link_failures == {"duplicate_call_id_conflict": 1}
    side = [one, two, call("x", [7], [8])]
    assert build_chains(side, terminal_call_id="x").trainable


def test_the_same_record_again_is_no_conflict() -> None:
    one = call("c", [1], [2, 3], generation_loss_mask=[1, 0])
    two = one.as_arrays().model_copy(update={"generation_loss_mask": np.array([True, False])})
    two.generation_log_probs = two.generation_log_probs.astype(np.float32)
    assert build_chains([one, two, one]).reasons == []


MASKS = ([1, 1, 0, 0, 1], [True, True, False, False, True], np.array([1, 1, 0, 0, 1]), np.array([1, 1, 0, 0, 1], bool))


@pytest.mark.parametrize("mask", MASKS, ids=["ints", "bools", "int array", "bool array"])
def test_masked_tokens_carry_no_loss_and_no_log_prob(mask: Any, tmp_path: Any) -> None:
    entry = call("c", [1, 7], [41, 42, 90, 91, 43], generation_loss_mask=mask)
    entry.generation_log_probs = [-0.1, -0.2, float("nan"), 5.0, -0.3]
    write_jsonl(tmp_path / "r.tokens.jsonl", [entry])
    for held in (entry, entry.as_arrays(), *read_jsonl(tmp_path / "r.tokens.jsonl")):
        build = build_chains([held])
        assert build.main is not None
        assert build.main.loss_mask.tolist() == [False, False, True, True, False, False, True]
        assert build.main.log_probs.tolist() == [0.0, 0.0, -0.1, -0.2, 0.0, 0.0, -0.3]
        assert build.main.spans.tolist() == [[2, 7]]
        assert build.notes.generated_tokens_captured == 5
        [item] = build.main.output_items(arrays=False)
        assert item["generation_loss_mask"] == [1, 1, 0, 0, 1]
        assert held.generation_log_probs[3] == 5.0  # the record's own stay


@pytest.mark.parametrize("mask", [[1], [1, 2], [1, None], "11", np.array([0.5, 1.0]), np.ones((2, 1), int), 1, {}])
def test_a_record_whose_mask_is_invalid_is_left_out(mask: Any) -> None:
    build = build_chains([call("a", [1], [2, 3], generation_loss_mask=mask), call("b", [5], [6])])
    assert [chain.call_ids for chain in build.chains] == [["b"]]
    assert build.notes.parent_link_failures == {"record_unreadable": 1}
    assert build.reasons == ["unresolved_parents"]


def test_a_token_carries_loss_in_the_first_chain_that_holds_it() -> None:
    build = build_chains(fork())
    assert [chain.call_ids for chain in build.chains] == [["a", "b"], ["a", "c"]]
    assert masks(build.chains) == [[0, 0, 1, 1, 0, 1], [0, 0, 1, 1, 0, 1]]
    rows = build.rows()
    assert masks(rows) == [[0, 0, 1, 1, 0, 1], [0, 0, 0, 0, 0, 1]]
    assert rows[1].log_probs.tolist() == [0.0] * 5 + [-0.5]
    assert build.chains[1].log_probs.tolist() == [0.0, 0.0, -0.5, -0.625, 0.0, -0.5]  # those of the build stay
    assert rows[0] is build.chains[0]
    assert [(row.chain_id, row.call_ids, row.token_ids.tolist()) for row in rows] == [
        (chain.chain_id, chain.call_ids, chain.token_ids.tolist()) for chain in build.chains
    ]


def test_packing_counts_a_token_once_or_in_each_chain() -> None:
    build = build_chains(fork())
    assert pack_chains(build.chains).loss_mask.astype(int).tolist() == [0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1]
    assert pack_chains(build.chains, shared="each").loss_mask.sum() == 6
    assert pack_chains(build.chains[::-1]).loss_mask.astype(int).tolist() == [0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 1]
    # A chain whose loss was taken out does not take it from another.
    assert pack_chains(build.rows()[::-1]).loss_mask.astype(int).tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 1, 1, 0, 1]
    assert pack_chains([build.chains[0]] * 2).loss_mask.astype(int).tolist() == [0, 0, 1, 1, 0, 1] + [0] * 6
    # By bins too the first of the input is the first.
    small, large = build_chains([call("s", [1], [2])]).main, build.chains[0]
    assert small is not None
    assert pack_chains([small, large, build.chains[1]], max_tokens=6).loss_mask.sum() == 5
    with pytest.raises(ValueError, match=r"^shared is 'twice': it must be 'once' or 'each'$"):
        pack_chains(build.chains, shared="twice")  # type: ignore[arg-type]


def test_only_the_same_token_is_shared() -> None:
    one = build_chains([call("a", [1, 2], [3])]).chains
    for other in (
        [call("a", [1, 2], [3], rollout_id="s")],  # another rollout
        [call("b", [1, 2], [3])],  # another call
        [call("a", [1, 5], [3])],  # other ids before it
        [call("a", [1, 2], [4])],  # another id
    ):
        chains = [*one, *build_chains(other).chains]
        assert pack_chains(chains).loss_mask.sum() == 2
    wide = [call("a", [1, 2], [3]).as_arrays(np.uint64)]
    assert pack_chains([*one, *build_chains(wide).chains]).loss_mask.sum() == 1


def test_a_cut_is_said() -> None:
    long, short = (
        build_chains([call(name, [*range(n)], [41, 42, 43, 44])]).chains[0] for name, n in (("l", 10), ("s", 2))
    )
    batch = pack_chains([short, long], max_tokens=8, too_long="truncate")
    assert batch.truncated.tolist() == [0, 6]
    assert (batch.truncated.dtype, batch.sequence_index.tolist()) == (np.int64, [1, 0])
    assert batch.loss_mask.sum() == 4
    assert pack_chains([short, long]).truncated.tolist() == [0, 0]
    assert pack_chains([]).truncated.tolist() == []


def test_weight_versions_are_those_of_the_calls() -> None:
    first, second, third = conversation(3)
    entries = [first.model_copy(update={"weight_version": "5"}), second, third.model_copy(update={"weight_version": 0})]
    main = build_chains(entries).main
    assert main is not None
    assert main.weight_versions == ["5", None, 0]


def test_every_reason_has_its_row_in_the_docs() -> None:
    text = (DOCS / "training.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(REASONS)


def test_undecided_retries_do_not_matter_where_a_terminal_call_was_named() -> None:
    retried = [call("a", [1], [2]), call("b", [1, 2], [3], "a"), call("c", [1, 2], [4], "a")]
    assert build_chains(retried, terminal_call_id="gone").reasons == ["terminal_not_captured"]


@pytest.mark.parametrize("mask", [[1, 2], [1], [5]])
def test_a_second_record_that_can_not_be_read_is_a_conflict(mask: list[int]) -> None:
    good = call("c", [1], [2, 3], generation_loss_mask=[1, 0])
    bad = call("c", [1], [2, 3], generation_loss_mask=mask)
    for order in ([good, bad], [bad, good]):
        assert build_chains(order, terminal_call_id="c").reasons == ["call_conflict"]


def test_equal_masks_are_equal_whatever_holds_them() -> None:
    records = [call("c", [1], [2, 3], generation_loss_mask=mask) for mask in ((1, 0), [True, False], np.array([1, 0]))]
    assert build_chains(records).reasons == []
    assert build_chains([call("c", [1], [2]), call("c", [1], [2], generation_loss_mask=[1])]).reasons == []


def test_the_start_of_a_generation_is_shared_too() -> None:
    chains = [build_chains([call("a", [1], generation)]).chains[0] for generation in ([3, 4, 6], [3, 5, 6])]
    assert pack_chains(chains).loss_mask.astype(int).tolist() == [0, 1, 1, 1, 0, 0, 1, 1]
    assert pack_chains([*chains, chains[1]]).loss_mask.sum() == 5
    unprompted = [build_chains([call("a", [], generation)]).chains[0] for generation in ([3, 4], [3, 5])]
    assert pack_chains(unprompted).loss_mask.astype(int).tolist() == [1, 1, 0, 1]
    # Of a chain whose loss was taken out in part only the rest is its own.
    first, rest = loss_once(chains)
    assert pack_chains([rest, first]).loss_mask.astype(int).tolist() == [0, 0, 1, 1, 0, 1, 1, 1]


def test_items_hold_the_chains_own_mask_and_are_json() -> None:
    items = [{"type": "message", "generation_loss_mask": [0]}]
    routes = np.zeros((2, 1, 1), np.int16)
    [item] = (
        build_chains([call("a", [1], [2], output_items=items, routed_experts=routes)])
        .chains[0]
        .output_items(arrays=False)
    )
    assert json.loads(json.dumps(item)) == {
        "type": "message",
        "prompt_token_ids": [1],
        "generation_token_ids": [2],
        "generation_log_probs": [-0.5],
        "routed_experts": [[[0]], [[0]]],
    }


def test_a_generation_behind_another_prompt_is_another_one() -> None:
    chains = [build_chains([call("a", [1, id_, 3, 4], [5] * 5)]).chains[0] for id_ in (2, 9)]
    assert pack_chains(chains).loss_mask.sum() == 10


def test_calls_of_other_rollouts_share_nothing() -> None:
    one, other = (build_chains([call("a", [1], [2, 3], rollout_id=name)]).chains[0] for name in "rs")
    assert masks(loss_once([one, one, other])) == [[0, 1, 1], [0, 0, 0], [0, 1, 1]]


@pytest.mark.parametrize("value", [1, "true", False, None])
def test_a_rollout_is_masked_where_a_record_says_true(value: Any) -> None:
    entries = conversation(3)
    entries[1] = entries[1].model_copy(update={"mask_sample": value})
    assert build_chains(entries).reasons == []
    entries[1] = entries[1].model_copy(update={"mask_sample": True})
    assert build_chains(entries).reasons == ["masked"]


def test_a_conflict_beside_the_chain_of_the_terminal_call_does_not_matter() -> None:
    entries = [*fork(), call("c", [1, 2, 3, 4, 8], [7], "a")]
    assert build_chains(entries, terminal_call_id="b").reasons == []
    assert build_chains(entries, terminal_call_id="c").reasons == ["call_conflict"]


def test_a_call_is_shared_by_a_chain_that_goes_on_and_one_that_does_not() -> None:
    long, short = (build_chains(conversation(turns)).chains[0] for turns in (2, 1))
    assert masks(loss_once([long, short])) == [[0, 1, 1, 0, 1, 1], [0, 0, 0]]
    assert masks(loss_once([short, long])) == [[0, 1, 1], [0, 0, 0, 0, 1, 1]]
