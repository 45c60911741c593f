"""What is said of one record: limits, values and positions."""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.factories import call, delta
from tokenrecords import link_entries, verify

if TYPE_CHECKING:
    from tokenrecords import TokenEntry


def only_message(entry: TokenEntry) -> str:
    (finding,) = verify([entry], vocab_size=100).findings
    return finding.message


def test_limits_are_where_they_should_be() -> None:
    def codes(*log_probs: float, dtype: Any = np.float64) -> list[str]:
        entry = call("a", [1], list(range(len(log_probs))), generation_log_probs=np.array(log_probs, dtype))
        return [finding.code for finding in verify([entry], vocab_size=100).findings]

    assert codes(1e-4, -9998.9) == []
    assert codes(1.1e-4) == ["log_prob_positive"]
    assert codes(-9999.0) == ["log_prob_sentinel"]
    assert codes(*[0.0] * 7) == codes(*[-0.0] * 7, -1e-9) == []
    assert codes(*[0.0] * 8, 5e-5) == []
    assert codes(*[-0.0] * 8) == ["log_probs_all_zero"]
    assert codes(1e-4, -0.5, dtype=np.float32) == codes(0.0, -0.5, dtype=np.float16) == []
    assert codes(5e-5, 1e-4, float("nan")) == ["log_prob_not_finite"]
    assert codes(1e-4, dtype=np.float16) == ["log_prob_positive"]  # which is 0.00010002 there
    assert codes(float("nan"), 3.0, -1e5, dtype=np.float32) == [
        "log_prob_not_finite",
        "log_prob_positive",
        "log_prob_sentinel",
    ]
    assert [finding.code for finding in verify([call("a", [99], [100])], vocab_size=100).findings] == [
        "id_outside_vocab"
    ]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"token_item_index": 2, "output_items": [{}]}, r"token_item_index is 2\b.* 1 items?\b"),
        ({"output_items": [{}, {"token_ids": 1, "routed_experts": "x"}]}, r"^output_items\[1\] holds routed_experts"),
        ({"routed_experts": [[0, 1]]}, r"^routed_experts has shape \(1, 2\)"),
        ({"model_call_id": 7}, "^model_call_id is 7, int"),
        ({"schema_version": 9}, r"^schema_version is 9, int: .*\b1\b"),
        ({"generation_logprobs": []}, "^'generation_logprobs' .* generation_log_probs$"),
        ({"generation_ids": []}, "^'generation_ids' .* generation_token_ids$"),
    ],
)
def test_the_values_are_said(fields: dict[str, Any], message: str) -> None:
    (text,) = (finding.message for finding in verify([call("a", [1], [2], **fields)]).findings)
    assert re.search(message, text), text


def test_the_number_of_generated_ids_and_that_of_log_probs_are_said() -> None:
    entry = call("a", [1], [2, 3], generation_log_probs=[-0.5])
    assert re.search(r"\b2 generated ids\b.*\b1 log-probs?\b", only_message(entry))


def test_the_first_id_outside_the_vocabulary_is_named() -> None:
    assert only_message(call("a", [99, 100, 300], [2])).startswith("prompt_token_ids[1] is 100: ")


def test_bad_log_probs_are_counted() -> None:
    def message(*log_probs: float) -> str:
        return only_message(call("a", [1], [2] * len(log_probs), generation_log_probs=log_probs))

    assert message(-0.5, 0.5).endswith("generation_log_probs[1] is 0.5: no log-prob is above 0.0001")
    assert message(-0.5, 0.5, 0.25).endswith(" (2 of 3 are like it)")


def test_why_a_parent_is_not_known_is_said() -> None:
    entry = call("a", [1], [2], parent_resolution="unresolved")
    assert not only_message(entry).endswith(": ")
    entry.parent_resolution_reason = "prefix_mismatch"
    assert only_message(entry).endswith(": prefix_mismatch")


@pytest.mark.parametrize("name", ["parent_id", "cum_length", "cum -- len", "CumLen", "Prompt-Token-Ids", "created"])
def test_a_name_that_nearly_is_a_field_is_one(name: str) -> None:
    assert verify([call("a", [1], [2], **{name: 1})]).counts == {"unknown_field": 1}


@pytest.mark.parametrize("name", ["prompt_ids", "item_index", "outputs", "resolution", "fingerprint"])
def test_a_name_that_is_a_little_further_off_is_none(name: str) -> None:
    assert verify([call("a", [1], [2], **{name: 1})]).counts == {}


def test_each_name_that_nearly_is_a_field_is_named() -> None:
    entry = call("a", [1], [2], reward=1.0, parent_id="p", generation_logprobs=[])
    assert [each.field for each in verify([entry]).findings] == ["parent_id", "generation_logprobs"]


def test_a_name_that_resembles_none_is_no_fault() -> None:
    fields = dict.fromkeys(("model_name", "weight_version", "reward", "finish_reason"), 1)
    assert verify([call("a", [1], [2]).model_copy(update=fields)]).findings == []


@pytest.mark.parametrize(
    "name", ["cum_len", "token_item_index", "created_at", "prompt_token_ids", "generation_log_probs"]
)
def test_an_int_that_has_no_text_is_a_finding_or_none(name: str) -> None:
    """Python makes no text of an int of more than 4,300 digits."""
    entry = call("a", [1], [2])
    huge = 10**5000
    setattr(entry, name, [huge] if name.startswith(("prompt", "gen")) else huge)
    found = [finding.field for finding in verify([entry]).findings]
    assert name == "created_at" or name in found
    link_entries([entry])


def test_only_log_probs_of_sampled_tokens_are_counted_and_named() -> None:
    few = call("c", [1], list(range(10)), generation_log_probs=[0.0] * 10, generation_loss_mask=[1] * 7 + [0] * 3)
    assert verify([few]).counts == {}
    enough = few.model_copy(update={"generation_loss_mask": [1] * 8 + [0] * 2})
    assert verify([enough]).counts == {"log_probs_all_zero": 1}
    nan = float("nan")
    entry = call("c", [1], [2, 3, 4], generation_log_probs=[nan, -0.5, nan], generation_loss_mask=[0, 1, 1])
    assert [(finding.code, finding.index) for finding in verify([entry]).findings] == [("log_prob_not_finite", 2)]


def test_a_reason_of_any_kind_is_no_error() -> None:
    entry = call("a", [1], [2], parent_resolution="unresolved")
    entry.parent_resolution_reason = np.array([1, 2])
    assert verify([entry]).counts == {"unresolved_parent": 1}


def test_routes_of_a_delta_that_leads_nowhere_are_not_counted() -> None:
    alone = delta(call("b", [1, 2, 3, 4], [5], "gone"), 3)
    alone.routed_experts = np.zeros((5, 1, 1), np.int8)
    assert verify([alone]).counts == {"delta_unreconstructable": 1}


def test_a_longer_prompt_is_another_one() -> None:
    long, short = call("c", [1, 2], [3]), call("c", [1], [3])
    for entries in ([long, short], [short, long]):
        assert verify(entries).counts == {"call_id_conflict": 1}


def counts(entry: TokenEntry) -> dict[str, int]:
    return verify([entry], vocab_size=100).counts


@pytest.mark.parametrize("name", ["prompt_token_ids", "generation_token_ids"])
def test_ids_that_no_dtype_holds_are_outside_or_negative_or_both(name: str) -> None:
    def found(*ids: int) -> list[tuple[str, str | None, int | None]]:
        entry = call("a", [1], [2, 3], **{name: [5, *ids]})
        return [(each.code, each.field, each.index) for each in verify([entry]).findings]

    assert found(2**63, -1) == [("id_negative", name, 2)]
    assert found(0, 2**64) == [("id_outside_vocab", name, 2)]
    assert found(-1, 2**64) == [("id_outside_vocab", name, 2), ("id_negative", name, 1)]


def test_a_negative_id_hides_no_other() -> None:
    assert counts(call("a", [1], [2], prompt_token_ids=[-1, 500], cum_len=3)) == {
        "id_negative": 1,
        "id_outside_vocab": 1,
    }


def test_ids_that_no_dtype_holds_together_have_no_length_to_compare() -> None:
    assert verify([call("a", [1], [2], prompt_token_ids=[2**63], generation_token_ids=[-1], cum_len=9)]).counts == {
        "id_negative": 1
    }


def test_more_log_probs_than_ids_are_as_wrong_as_fewer() -> None:
    for log_probs in ([-0.5], [-0.5] * 3):
        assert counts(call("a", [1], [2, 3], generation_log_probs=log_probs)) == {"length_mismatch": 1}


def test_log_probs_of_no_ids_are_looked_at() -> None:
    entry = call("a", [1], [], generation_log_probs=[0.5])
    assert counts(entry) == {"length_mismatch": 1, "empty_generation": 1, "log_prob_positive": 1}


def test_a_mask_of_another_length_takes_out_no_log_prob() -> None:
    for mask in ([0, 0], [0, 0, 0]):  # of the ids, and of neither
        entry = call("a", [1], [2, 3], generation_log_probs=[0.5], generation_loss_mask=mask)
        assert counts(entry)["log_prob_positive"] == 1
    entry = call("a", [1], [2, 3], generation_log_probs=[0.5], generation_loss_mask=[0])
    assert counts(entry) == {"mask_invalid": 1, "length_mismatch": 1, "log_prob_positive": 1}


def test_how_many_log_probs_are_bad_is_said_of_all() -> None:
    entry = call("a", [1], [2, 3, 4], generation_log_probs=[0.5, -0.5, 0.25], generation_loss_mask=[1, 0, 1])
    assert only_message(entry).endswith(" (2 of 3 are like it)")


def test_a_token_field_without_a_value_is_not_there() -> None:
    entry = call("a", [1], [2], output_items=[{"type": "message", "prompt_token_ids": None, "routed_experts": None}])
    assert counts(entry) == {}


def test_each_item_that_holds_tokens_is_named() -> None:
    items = [{"generation_token_ids": [2]}, {}, {"prompt_token_ids": [1], "generation_token_ids": [2]}]
    found = verify([call("a", [1], [2], output_items=items)]).findings
    assert [(each.index, each.message) for each in found] == [
        (0, "output_items[0] holds generation_token_ids once more"),
        (2, "output_items[2] holds prompt_token_ids, generation_token_ids once more"),
    ]


def test_routes_have_three_dimensions() -> None:
    (finding,) = verify([call("a", [1], [2], routed_experts=np.zeros((2, 1, 1, 1), np.int8))]).findings
    message = "routed_experts has shape (2, 1, 1, 1): tokens x layers x top_k is needed"
    assert (finding.code, finding.message) == ("routes_unreadable", message)


@pytest.mark.parametrize("rows", [3, 6])
def test_routes_of_a_delta_are_of_its_own_ids_or_of_all(rows: int) -> None:
    first, second = call("a", [1, 2], [3, 4, 5]), delta(call("b", [1, 2, 3, 4, 5, 6], [7], "a"), 5)
    second.routed_experts = np.zeros((rows, 1, 1), np.int8)
    assert verify([first, second]).counts == ({} if rows == 6 else {"routes_incomplete": 1})


def test_ids_are_counted_as_far_as_they_can_be_read() -> None:
    assert verify([call("a", [1, 2, 3], [4], generation_token_ids=[4, None])]).ids == 3


@pytest.mark.parametrize(
    "fields",
    [
        {"parent_resolution": ""},
        {"parent_resolution": "adopted"},
        {"parent_resolution": "root", "parent_call_id": "c", "prompt_is_delta": 1},
        {"parent_resolution": "resolved", "parent_call_id": 7},
    ],
)
def test_a_field_that_can_not_be_read_contradicts_nothing(fields: dict[str, Any]) -> None:
    assert counts(call("a", [1], [2], **fields)) == {"field_invalid": 1}


def test_a_value_of_a_wrong_type_is_shortened() -> None:
    (text,) = (each.message for each in verify([call("a", [1], [2], digest=list(range(10_000)))]).findings)
    assert len(text) < 200


def test_an_item_of_any_kind_of_mapping_is_looked_at() -> None:
    entry = call("a", [1], [2], output_items=[MappingProxyType({"prompt_token_ids": [1]})])
    assert counts(entry) == {"tokens_in_items": 1}
