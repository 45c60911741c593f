"""What a response says of its making."""

import pytest
from support.payloads import native_item, refused, sglang_sample, vllm_chat, vllm_choice
from tokenrecords import entries_from_response, read_response


def extras(payload):
    return [choice.extras for choice in read_response(payload)]


def test_where_it_is_said():
    assert extras(sglang_sample(weight_version="5")) == [{"weight_version": "5"}]
    assert extras(vllm_chat(metadata={"weight_version": 6, "user": "u"})) == [{"weight_version": 6}]
    message = {"role": "assistant", "content": "ok", "ng_turn": 3}
    choice = vllm_choice(sampling_mask=[[41, 9], [2]], indexer_topk="AA", weight_version="7", message=message)
    assert extras(vllm_chat(choice, ng_run="x")) == [
        {"ng_turn": 3, "sampling_mask": [[41, 9], [2]], "indexer_topk": "AA", "weight_version": "7", "ng_run": "x"}
    ]
    assert extras({"object": "response", "output": [native_item(ng_x=1)], "weight_version": "8"}) == [
        {"ng_x": 1, "weight_version": "8"}
    ]
    assert extras(vllm_chat(weight_version=None)) == [{}]


def test_two_places_must_agree():
    refused(
        sglang_sample(weight_version="5") | {"weight_version": "6"},
        "meta_info.weight_version disagree",
    )


def test_what_is_said_of_tokens_belongs_to_one_choice():
    two = (vllm_choice(0), vllm_choice(1))
    assert extras(vllm_chat(*two, weight_version="5", metadata={"indexer_topk": "AA"})) == [{"weight_version": "5"}] * 2
    assert extras(vllm_chat(indexer_topk="AA")) == [{"indexer_topk": "AA"}]
    refused(
        vllm_chat(*two, sglext={"indexer_topk": "AA"}), "sglext does not say which choice its indexer_topk belongs to"
    )


def test_records_have_it():
    payload = vllm_chat(vllm_choice(sampling_mask=[[41], [2]]), weight_version="5")
    [entry] = entries_from_response(payload, rollout_id="r", model_call_id="c")
    assert (entry.weight_version, entry.sampling_mask) == ("5", [[41], [2]])
    [entry] = entries_from_response(payload, rollout_id="r", model_call_id="c", weight_version="6")
    assert entry.weight_version == "6"
    item = {"type": "message", "content": "x", "sampling_mask": [[1]], "generation_loss_mask": [1, 1], **native_item()}
    [choice] = read_response({"object": "response", "output": [item]})
    assert not {"sampling_mask", "generation_loss_mask"} & choice.output_items[0].keys()


@pytest.mark.parametrize("place", ["meta_info", "metadata"])
def test_an_object_of_the_choice_says_it_as_well(place):
    assert extras(vllm_chat(vllm_choice(**{place: {"weight_version": "5"}}))) == [{"weight_version": "5"}]
    refused(
        vllm_chat(vllm_choice(**{place: {"weight_version": "5"}}), weight_version="6"),
        f"{place}.weight_version and weight_version disagree",
    )


def test_each_engine_has_its_own_place():
    tinker = {"prompt_token_ids": [1], "sequences": [{"tokens": [2], "logprobs": [-0.5], "weight_version": "5"}]}
    assert extras(tinker) == [{"weight_version": "5"}]
    data = {"prompt_token_ids": [1], "completion_token_ids": [2], "completion_logprobs": [-0.5], "weight_version": "5"}
    dynamo = {"choices": [{"message": {"content": "x"}}], "nvext": {"engine_data": data, "sampling_mask": [[2]]}}
    assert extras(dynamo) == [{"sampling_mask": [[2]], "weight_version": "5"}]


def test_the_places_are_named():
    both = {"metadata": {"weight_version": "5"}, "meta_info": {"weight_version": "6"}}
    why = "metadata.weight_version and {}meta_info.weight_version disagree"
    refused(vllm_chat(**both), f"choice 0: {why.format('')}")
    refused(vllm_chat(nvext=both), f"dynamo choice 0: nvext.{why.format('nvext.')}")
    message = {"content": "ok", **both}
    refused(vllm_chat(vllm_choice(message=message)), f"choice 0: message.{why.format('message.')}")


def test_the_names_of_engines():
    says = {"output_token_sampling_mask": [[41], [2]], "output_token_sampling_logprobs": [[-0.5], [-0.5]]}
    assert extras(sglang_sample(**says)) == [{"sampling_mask": [[41], [2]], "sampling_log_probs": [[-0.5], [-0.5]]}]
    held = {"weight_versions": ["5", "6"], "sampling_log_probs": [[-0.5], [-0.5]]}
    assert extras(sglang_sample(**held)) == [held]


def test_what_only_holds_the_letters_is_not_kept():
    assert extras(vllm_chat(training_step=3, version=4, ng="x", _ng_x=1, NG_x=2)) == [{}]
    assert extras({**vllm_chat(), 7: "x"}) == [{}]


@pytest.mark.parametrize("value", [0, "", False, []])
def test_what_is_empty_is_kept(value):
    assert extras(vllm_chat(ng_x=value, weight_version=value)) == [{"ng_x": value, "weight_version": value}]
