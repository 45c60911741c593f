"""Chains of a rollout."""

from __future__ import annotations

import itertools
import json
import pickle
import re
import sys
from typing import Any

import numpy as np
import pytest
from support.factories import as_arrays, call, conversation, delta
from support.fingerprints import twin
from support.places import DATA
from tokenrecords import Chain, ChainBuild, TokenEntry, _core, build_chains, compute_digest

CASES = json.loads((DATA / "chains.json").read_text(encoding="utf-8"))["cases"]


def facts(build: ChainBuild) -> dict[str, Any]:
    chains = [{"id": c.chain_id, "calls": c.call_ids, "token_ids": c.token_ids.tolist()} for c in build.chains]
    return {"chains": chains, "quarantined": build.quarantined, **vars(build.notes)}


def calls(build: ChainBuild) -> dict[str, list[str]]:
    return {chain.chain_id: chain.call_ids for chain in build.chains}


def failures(*entries: TokenEntry, **options: Any) -> dict[str, int]:
    return build_chains(entries, **options).notes.parent_link_failures


def main(*entries: TokenEntry, **options: Any) -> Chain:
    chain = build_chains(entries, **options).main
    assert chain is not None
    return chain


@pytest.mark.parametrize("kind", ["lists", "arrays"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_rollout_of_the_published_builder(case: dict[str, Any], kind: str) -> None:
    entries = [TokenEntry(**fields) for fields in case["entries"]]
    entries = as_arrays(entries) if kind == "arrays" else entries
    for order in (entries, entries[::-1]):
        if order is not entries and case["expected"]["parent_link_failures"].get("duplicate_call_id_conflict"):
            continue  # the first record of a call is the one that stays
        build = build_chains(order, terminal_call_id=case["terminal_call_id"])
        assert facts(build) == case["expected"]
        assert build.trainable == may_be_trained_on(case["expected"])
        assert build.trainable == (not build.reasons)


def may_be_trained_on(notes: dict[str, Any]) -> bool:
    """What `mask_sample` of the published consumer asks, and that something is there to train on."""
    if not any(chain["id"] == "main" for chain in notes["chains"]):
        return False
    if notes["terminal_chain"]:
        return notes["terminal_chain"] == "delivered"
    is_one_chain = notes["roots"] == 1 and len(notes["chains"]) == 1
    return is_one_chain and not notes["unresolved_retries"] and not notes["unresolved_parent_calls"]


@pytest.mark.parametrize("deltas", [False, True])
@pytest.mark.parametrize("convert", [list, as_arrays])
def test_a_conversation_is_one_chain(convert: Any, *, deltas: bool) -> None:
    chain = main(*convert(conversation(deltas=deltas)))
    assert (chain.rollout_id, chain.chain_id, chain.call_ids) == ("r", "main", ["c0", "c1", "c2"])
    assert chain.token_ids.tolist() == [100, 200, 300, 101, 201, 301, 102, 202, 302]
    assert chain.loss_mask.tolist() == [False, True, True] * 3
    assert chain.log_probs.tolist() == [0.0, -0.5, -0.625] * 3
    assert chain.spans.tolist() == [[1, 3], [4, 6], [7, 9]]
    dtypes = [array.dtype for array in (chain.token_ids, chain.loss_mask, chain.log_probs, chain.spans)]
    assert dtypes == [np.int32, np.bool_, np.float64, np.int64]
    assert len(chain) == 9


def test_no_entries_no_chains() -> None:
    build = build_chains([])
    assert (build.chains, build.main, build.quarantined, build.trainable) == ([], None, [], False)
    assert build_chains([], terminal_call_id="c").notes.terminal_chain == "not_captured"


def test_two_rollouts_are_refused() -> None:
    other = call("a", [1], [2], rollout_id="s")
    with pytest.raises(ValueError, match=r"entries\[1\] is of rollout 's', entries\[0\] of 'r'"):
        build_chains([call("a", [1], [2]), other])


def test_the_entries_are_not_changed() -> None:
    entries = as_arrays(conversation(deltas=True))
    before = pickle.dumps(entries)
    chain = main(*entries)
    chain.token_ids[:] = 7
    chain.log_probs[:] = 7
    assert pickle.dumps(entries) == before


# What the published rollouts never show.


def test_where_nobody_decided_a_parent_id_counts() -> None:
    a, b = call("a", [1], [2]), call("b", [1, 2, 3], [4], "a", parent_resolution=None)
    assert main(a, b).call_ids == ["a", "b"]
    assert failures(a, b.model_copy(update={"parent_call_id": None})) == {"missing_resolution": 1}
    resolved = b.model_copy(update={"parent_call_id": None, "parent_resolution": "resolved"})
    assert failures(a, resolved) == {"resolved_parent_missing_id": 1}


@pytest.mark.parametrize("absent", [{"digest"}, {"cum_len"}, {"digest", "cum_len"}])
def test_an_absent_stamp_is_computed(absent: set[str]) -> None:
    a, b = call("a", [1], [2], **dict.fromkeys(absent)), call("b", [1, 2, 3], [4], "a")
    assert main(a, b).call_ids == ["a", "b"]
    assert failures(a, call("b", [1, 9, 3], [4], "a")) == {"parent_digest_mismatch": 1}


def test_a_stamp_that_describes_other_ids_proves_nothing() -> None:
    b = call("b", [1, 2, 3], [4], "a")
    for stamp in ({"cum_len": 1}, {"cum_len": 1, "digest": compute_digest([1])}, {"digest": "0" * 64}, {"cum_len": 9}):
        assert failures(call("a", [1], [2], **stamp), b) == {"parent_digest_mismatch": 1}
    # The recorded digest is that of the prompt's start, the parent's own ids are others.
    stamp = {"cum_len": 2, "digest": compute_digest([1, 2])}
    assert failures(call("a", [1], [7], **stamp), b) == {"parent_digest_mismatch": 1}


def test_a_call_that_is_there_is_not_searched_for() -> None:
    a = call("a", [1], [2])
    itself = call("b", [1, 2, 3], [4], "b")
    lost = call("x", [1, 2, 5], [6], "gone")
    later = call("c", [1, 2, 3], [4], "d")
    longer = call("d", [1, 2, 3, 4, 5], [6], "a")
    assert failures(a, itself) == {"parent_call_id_missing": 1}
    assert failures(a, itself, lost) == {"parent_call_id_missing": 1, "parent_call_id_missing_recovered": 1}
    assert failures(a, later, longer) == {"parent_call_id_missing": 1}


def test_a_missing_parent_is_found_by_its_ids() -> None:
    entries = [*conversation(3)[:2], call("x", [100, 200, 300, 101, 201, 301, 7], [8], "gone")]
    assert main(*entries).call_ids == ["c0", "c1", "x"]
    assert failures(*entries) == {"parent_call_id_missing_recovered": 1}
    # Its stamp is not asked, for nobody recorded that it is the parent.
    entries[1].digest = "0" * 64
    assert calls(build_chains(entries[1:])) == {"main": ["c1", "x"]}


def test_of_two_calls_with_the_longest_sequence_none_is_the_parent() -> None:
    same = [call("a", [1], [2, 3]), call("b", [1, 2], [3]), call("short", [1], [2], created_at=-1.0)]
    lost = call("x", [1, 2, 3, 4], [5], "gone")
    assert failures(*same, lost) == {"parent_call_id_missing": 1}
    assert failures(*same[1:], lost) == {"parent_call_id_missing_recovered": 1}
    assert failures(same[0], call("x", [7, 2, 3, 4], [5], "gone")) == {"parent_call_id_missing": 1}


@pytest.mark.parametrize("times", list(itertools.permutations([float("nan"), 10**400, 1.0])))
def test_a_time_that_is_nan_is_later_than_all_others(times: tuple[float, ...]) -> None:
    entries = [
        call(name, [number], [9], created_at=time) for number, (name, time) in enumerate(zip("abc", times, strict=True))
    ]
    main = build_chains(entries).main
    assert main is not None
    assert main.call_ids == ["abc"[times.index(1.0)]]


def test_a_sequence_with_the_same_fingerprint_is_no_prefix() -> None:
    id_ = twin(1, 5, 2)
    index = _core.PrefixIndex([([1, 5],), ([2, id_],)])
    assert index.longest([1, 5], 2) == index.longest([2, id_], 2) == [0, 1]
    entries = [call("short", [1], [5]), call("twin", [2], [id_, 3]), call("x", [1, 5, 3, 4], [6], "gone")]
    assert main(*entries).call_ids == ["short", "x"]


def test_ids_are_the_same_in_any_dtype() -> None:
    big = 2**63 + 5
    dtypes = itertools.cycle([np.uint64, ">u8", object])
    sequence, entries = [big], []
    for turn, dtype in zip(range(3), dtypes, strict=False):
        entry = call(f"c{turn}", list(sequence), [turn], f"c{turn - 1}" if turn else None)
        entry.prompt_token_ids = entry.prompt_token_ids if dtype is object else np.array(sequence, dtype)
        entry.generation_token_ids = np.array([turn], np.int8)
        entries += [entry, entry.as_lists()]  # the same call once more
        sequence += [turn, big + turn]
    chain = main(*entries)
    assert chain.call_ids == ["c0", "c1", "c2"]
    assert chain.token_ids.tolist() == sequence[:-1]
    assert chain.token_ids.dtype == np.uint64
    swapped = call("a", [1], [2]).as_arrays().model_copy(update={"prompt_token_ids": np.array([1], ">i8")})
    assert main(swapped).token_ids.dtype == np.dtype("=i8")
    strided = np.array([1, 0, 2, 0, 3], np.int32)[::2]
    assert main(call("a", [1], [2]), call("b", strided, [4], "a")).call_ids == ["a", "b"]


def test_negative_ids_prove_nothing_and_do_no_harm() -> None:
    a = call("a", [1], [2], prompt_token_ids=[-1], digest=None)
    b = call("b", [1, 2, 3], [4], "a", prompt_token_ids=[-1, 2, 3])
    lost = call("x", [1, 2, 3], [4], "gone", prompt_token_ids=[-1, 2, 3])
    build = build_chains([a, a.as_arrays(), b, lost])
    assert build.notes.parent_link_failures == {"parent_digest_mismatch": 1, "parent_call_id_missing": 1}
    assert build.notes.unresolved_retries == build.notes.unresolved_parent_calls == ["b", "x"]
    assert calls(build) == {"main": ["a"], "branch-0": ["b"]}
    assert build.chains[0].token_ids.tolist() == [-1, 2]


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt_token_ids": None},
        {"prompt_token_ids": [2**64]},
        {"prompt_token_ids": [1.5]},
        {"prompt_token_ids": np.zeros((2, 2), int)},
        {"prompt_token_ids": [-1], "generation_token_ids": np.array([2**63], np.uint64)},
        {"generation_token_ids": "23"},
        {"generation_log_probs": [-0.5, -0.5]},
        {"generation_log_probs": ["x"]},
        {"model_call_id": None},
        {"parent_call_id": []},
        {"created_at": None},
        {"output_items": None},
    ],
)
def test_a_record_that_was_broken_by_assignment_is_left_out(fields: dict[str, Any]) -> None:
    broken = call("x", [1], [2], **fields)
    build = build_chains([broken, *conversation(2)])
    assert calls(build) == {"main": ["c0", "c1"]}
    assert build.notes.parent_link_failures == {"record_unreadable": 1}
    assert build.notes.unresolved_parent_calls == [str(broken.model_call_id)]


def test_a_conflict_is_counted_once_for_each_record() -> None:
    first, *others = (call("a", [1], [2 + n]) for n in range(3))
    notes = build_chains([first, *others, first]).notes
    assert notes.parent_link_failures == {"duplicate_call_id_conflict": 2}
    assert notes.unresolved_parent_calls == ["a", "a"]


def test_a_delta_is_read_through_calls_that_are_no_part_of_a_chain() -> None:
    empty = call("e", [1, 2, 3], [], "a")
    after = delta(call("b", [1, 2, 3, 4], [5], "e"), 3)
    build = build_chains([call("a", [1], [2]), empty, after])
    assert calls(build) == {"main": ["a", "b"]}
    assert build.notes.empty_generation_calls == ["e"]
    wrong = delta(call("b", [1, 2, 9], [5], "a", digest="0" * 64), 2)
    on = delta(call("c", [1, 2, 9, 5, 6], [7], "b"), 4)
    build = build_chains([call("a", [1], [2]), wrong, on])
    assert calls(build) == {"main": ["a", "c"]}
    assert list(build.notes.parent_link_failures.items()) == [
        ("delta_chain_unreconstructable", 1),
        ("parent_call_id_missing_recovered", 1),
    ]


def test_the_terminal_call_decides_between_retries() -> None:
    a, b = call("a", [1], [2]), call("b", [1], [3])
    on = call("c", [1, 2, 4], [5], "a")
    assert calls(build_chains([a, b, on])) == {"main": ["a", "c"]}
    build = build_chains([a, b, on], terminal_call_id="b")
    assert (calls(build), build.quarantined, build.trainable) == ({"main": ["b"]}, ["a"], True)
    undecided = build_chains([a, b])
    assert (undecided.notes.unresolved_retries, undecided.quarantined) == (["a", "b"], ["b"])
    assert not undecided.trainable


def test_the_main_chain_ends_with_the_terminal_call() -> None:
    build = build_chains(conversation(3), terminal_call_id="c1")
    assert calls(build) == {"main": ["c0", "c1"]}
    assert (build.notes.terminal_chain, build.notes.delivered_fraction, build.trainable) == ("delivered", 0.6667, True)
    entries = conversation(3)
    entries[1].parent_resolution, entries[1].parent_call_id = "unresolved", None
    build = build_chains(entries, terminal_call_id="c2")
    assert calls(build) == {"main": ["c0"], "branch-0": ["c1", "c2"]}
    assert (build.notes.terminal_chain, build.trainable) == ("broken", False)


# Output items.


def test_each_call_has_one_item_that_carries_its_tokens() -> None:
    reasoning, message = {"type": "reasoning"}, {"type": "message", "content": "hi"}
    stale = {"type": "message", "prompt_token_ids": [9], "generation_token_ids": [9]}
    entries = conversation(4, deltas=True)
    for entry, fields in zip(
        entries,
        [
            {"output_items": [reasoning, message], "token_item_index": 0, "routed_experts": "routes"},
            {"output_items": [stale, message]},
            {"output_items": [reasoning, message], "token_item_index": 2},
            {},
        ],
        strict=True,
    ):
        for name, value in fields.items():
            setattr(entry, name, value)
    items = main(*entries).output_items()
    tokens = [{name: item.pop(name) for name in tuple(item) if name.endswith(("_ids", "_probs"))} for item in items]
    assert items == [
        {"type": "reasoning", "routed_experts": "routes"},
        message,
        {"type": "message"},
        message,
        reasoning,
        message,
        {"type": "message"},
    ]
    assert [bool(carried) for carried in tokens] == [True, False, False, True, False, True, True]
    carriers = [{name: array.tolist() for name, array in carried.items()} for carried in tokens if carried]
    sequence = [100, 200, 300, 101, 201, 301, 102, 202, 302, 103, 203, 303]
    assert carriers == [
        {
            "prompt_token_ids": sequence[: 3 * turn + 1],
            "generation_token_ids": sequence[3 * turn + 1 : 3 * turn + 3],
            "generation_log_probs": [-0.5, -0.625],
        }
        for turn in range(4)
    ]
    assert stale == {"type": "message", "prompt_token_ids": [9], "generation_token_ids": [9]}


@pytest.mark.parametrize(("index", "carrier"), [(0, 0), (2, 2), (3, 2), (-1, 2), (-2, 2), (None, 2)])
def test_an_index_of_no_item_is_that_of_the_last_one(index: int | None, carrier: int) -> None:
    items = main(call("a", [1], [2], output_items=[{}, {}, {}], token_item_index=index)).output_items()
    assert [place for place, item in enumerate(items) if "prompt_token_ids" in item] == [carrier]


def test_routes_of_any_kind_are_handed_on() -> None:
    for routes in ([], np.zeros((2, 1, 1), np.int8)):
        (item,) = main(call("a", [1], [2], routed_experts=routes)).output_items()
        assert item["routed_experts"] is routes


def test_where_nothing_was_generated_nothing_was_delivered() -> None:
    notes = build_chains([call("a", [1], [])]).notes
    assert (notes.generated_tokens_captured, notes.delivered_fraction) == (0, 0.0)
    assert notes.empty_generation_calls == ["a"]


def test_the_text_of_a_chain_leaves_out_what_its_records_hold() -> None:
    text = repr(main(call("a", [1], [2], output_items=[{"type": "a long message"}])))
    assert text.startswith("Chain(rollout_id='r', chain_id='main', call_ids=['a'], ")
    assert "a long message" not in text


def test_a_chain_can_be_sent_to_another_process() -> None:
    chain = main(*as_arrays(conversation(200)))
    sent = pickle.dumps(chain)
    assert len(sent) < 40_000  # its arrays, not those of its records
    assert [item["prompt_token_ids"].tolist() for item in pickle.loads(sent).output_items()] == [
        item["prompt_token_ids"].tolist() for item in chain.output_items()
    ]


# Size.


def test_long_chains_do_not_recurse() -> None:
    turns = 3 * sys.getrecursionlimit()
    entries = as_arrays(conversation(turns, deltas=True))[::-1]
    assert len(main(*entries).call_ids) == turns


def test_many_calls_without_their_parents_are_searched_for_in_linear_time() -> None:
    # Comparing each with each would compare 10**11 ids.
    system = np.arange(10_000, dtype=np.int32)
    entries = [call(f"c{n:04}", [*range(3)], [n], "gone").as_arrays() for n in range(3_000)]
    for n, entry in enumerate(entries):
        entry.prompt_token_ids = np.append(system, np.int32(n))
        entry.cum_len = entry.digest = None
    assert failures(*entries) == {"parent_call_id_missing": 3_000}


def test_a_notebook_lists_twenty_chains_and_of_more_the_number() -> None:
    def rows(count: int) -> list[str]:
        build = build_chains(call(f"c{n}", [n], [1]) for n in range(count))
        return re.findall(r"<tr><td.*?</tr>", build._repr_html_())

    assert len(rows(20)) == 20
    assert not any("more chains" in row for row in rows(20))
    assert (len(rows(21)), "1 more chains" in rows(21)[-1]) == (21, True)
    assert "1,000 more chains" in rows(1_020)[-1]
