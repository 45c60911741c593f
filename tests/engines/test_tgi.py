"""TGI: `details`."""

import pytest
from support.payloads import TOKENS, refused, tgi, tokens_of
from tokenrecords import detect_dialect, read_response


def test_tgi():
    [choice] = read_response(tgi())
    assert (tokens_of(choice), choice.finish_reason) == (TOKENS, "length")
    assert choice.output_items == [{"type": "message", "role": "assistant", "content": "ok"}]
    assert detect_dialect([tgi()]) == "tgi"
    assert tokens_of(read_response([tgi()])[0]) == TOKENS
    assert read_response({"generated_text": "ok", "details": None}) == []


@pytest.mark.parametrize(
    ("details", "message"),
    [
        ({"generated_tokens": 3}, "2 generation_token_ids, but the engine counted 3"),
        ({"prefill": []}, "prompt_token_ids is missing"),
        (
            {"tokens": [{"id": 41, "logprob": None}, {"id": 2, "logprob": -0.5}]},
            "generation_log_probs[0] is null",
        ),
        ({"tokens": [{"logprob": -0.125}, {"id": 2, "logprob": -0.5}]}, "generation_token_ids[0] is null"),
        ({"tokens": None}, "generation_token_ids is missing"),
    ],
)
def test_tgi_faults(details, message):
    refused(tgi(**details), "tgi choice 0: ", message)


def test_tgi_best_of():
    other = {
        **tgi()["details"],
        "generated_text": "no",
        "tokens": [{"id": 9, "logprob": -1.0}],
        "generated_tokens": 1,
    }
    choices = read_response(tgi(best_of_sequences=[other]))
    assert [tokens_of(choice) for choice in choices] == [TOKENS, ([1, 7], [9], [-1.0])]
    assert choices[1].output_items[0]["content"] == "no"
    assert len(read_response(tgi(best_of_sequences=[{**other, "prefill": []}]))) == 2
    other["prefill"] = [{"id": 1}, {"id": 8}]
    refused(
        tgi(best_of_sequences=[other]),
        "tgi choice 1: best_of_sequences[0].prefill and details.prefill disagree",
    )
