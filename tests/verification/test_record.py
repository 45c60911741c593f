"""What is said of one record: limits, values and positions."""

from __future__ import annotations

import re
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
