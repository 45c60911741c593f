"""A sound payload of each dialect, of any tokens."""

from typing import Any

from hypothesis import strategies as st

from support.payloads import duos, engine_output, entries, numbered, pairs, token_fields, words

IDS = st.lists(st.integers(0, 200_000), min_size=1, max_size=5)
CHOICE = IDS.flatmap(
    lambda ids: st.tuples(st.just(ids), st.lists(st.floats(-9, 0, width=32), min_size=len(ids), max_size=len(ids)))
)
SAMPLES = st.tuples(IDS, st.lists(CHOICE, min_size=1, max_size=3))


def usage_of(prompt: list[int], samples: list[Any]) -> dict[str, int]:
    return {"prompt_tokens": len(prompt), "completion_tokens": sum(len(ids) for ids, _ in samples)}


def chat_of(prompt: list[int], samples: list[Any], choice_of: Any, /, **head: Any) -> dict[str, Any]:
    choices = [
        {"index": i, "message": {"role": "assistant", "content": "x"}, **choice_of(ids, log_probs)}
        for i, (ids, log_probs) in enumerate(samples)
    ]
    return {"object": "chat.completion", "choices": choices, "usage": usage_of(prompt, samples), **head}


def sound_payloads(prompt: list[int], samples: list[Any]) -> dict[str, Any]:
    """A sound payload of each dialect, wherever the engine can with each id said twice."""
    ids, log_probs = samples[0]
    return {
        "vllm-chat": chat_of(
            prompt, samples, lambda i, lp: {"token_ids": i, "logprobs": words(i, lp)}, prompt_token_ids=prompt
        ),
        "vllm-completions": {
            "object": "text_completion",
            "usage": usage_of(prompt, samples),
            "choices": [
                {
                    "index": k,
                    "text": "x",
                    "token_ids": i,
                    "prompt_token_ids": prompt,
                    "logprobs": {"tokens": [f"token_id:{n}" for n in i], "token_logprobs": lp},
                }
                for k, (i, lp) in enumerate(samples)
            ],
        },
        "vllm-generate": {
            "request_id": "r",
            "prompt_token_ids": prompt,
            "choices": [{"index": k, "token_ids": i, "logprobs": words(i, lp)} for k, (i, lp) in enumerate(samples)],
        },
        "sglang-generate": [
            {
                "text": "x",
                "output_ids": i,
                "meta_info": {
                    "prompt_tokens": len(prompt),
                    "completion_tokens": len(i),
                    "input_token_logprobs": pairs(prompt, [-1.0] * len(prompt)),
                    "output_token_logprobs": pairs(i, lp),
                },
            }
            for i, lp in samples
        ],
        "sglang-chat": chat_of(
            prompt,
            samples,
            lambda i, lp: {
                "prompt_token_ids": prompt,
                "token_ids": i,
                "meta_info": {"output_token_logprobs": pairs(i, lp), "completion_tokens": len(i)},
                "logprobs": numbered(i, lp),
            },
        ),
        "dynamo": chat_of(
            prompt,
            samples[:1],
            lambda i, lp: {"logprobs": words(i, lp)},
            nvext={
                "engine_data": {
                    "prompt_token_ids": prompt,
                    "completion_token_ids": ids,
                    "completion_logprobs": log_probs,
                }
            },
        ),
        "fireworks": chat_of(
            prompt,
            samples,
            lambda i, lp: {
                "raw_output": {
                    "prompt_token_ids": prompt,
                    "completion_token_ids": i,
                    "completion_logprobs": numbered(i, lp),
                }
            },
        ),
        "lmdeploy-chat": chat_of(
            prompt,
            samples,
            lambda i, lp: {"output_ids": i, "output_token_logprobs": duos(i, lp)},
            prompt_token_ids=prompt,
        ),
        "lmdeploy-messages": {
            "type": "message",
            "role": "assistant",
            "content": [],
            "prompt_token_ids": prompt,
            "output_ids": ids,
            "output_token_logprobs": duos(ids, log_probs),
            "usage": {"output_tokens": len(ids)},
        },
        "lmdeploy-generate": [
            {
                "text": "x",
                "prompt_token_ids": prompt,
                "output_ids": i,
                "meta_info": {"completion_tokens": len(i), "output_token_logprobs": duos(i, lp)},
            }
            for i, lp in samples
        ],
        "llama-cpp": [
            {
                "content": "x",
                "prompt_token_ids": prompt,
                "tokens": i,
                "tokens_predicted": len(i),
                "completion_probabilities": entries(i, lp, "id"),
            }
            for i, lp in samples
        ],
        "llama-cpp-chat": chat_of(
            prompt, samples, lambda i, lp: {"logprobs": {"content": entries(i, lp, "id")}}, prompt_token_ids=prompt
        ),
        "together-chat": chat_of(
            prompt,
            samples,
            lambda i, lp: {"logprobs": {"token_ids": i, "tokens": ["x"] * len(i), "token_logprobs": lp}},
            prompt=[{"text": "x", "logprobs": {"token_ids": prompt}}],
        ),
        "tinker": {
            "type": "sample",
            "prompt_token_ids": prompt,
            "sequences": [{"tokens": i, "logprobs": lp, "stop_reason": "stop"} for i, lp in samples],
        },
        "vllm-engine": {
            "request_id": "r",
            "finished": True,
            "prompt_token_ids": prompt,
            "outputs": [engine_output(k, i, lp) for k, (i, lp) in enumerate(samples)],
        },
        "flat": token_fields(prompt, ids, log_probs),
        "tgi": {
            "generated_text": "x",
            "details": {
                "generated_tokens": len(ids),
                "prefill": [{"id": i, "logprob": None} for i in prompt],
                "tokens": [{"id": i, "logprob": lp} for i, lp in zip(ids, log_probs, strict=True)],
            },
        },
        "litellm": chat_of(
            prompt,
            samples,
            lambda i, lp: {"provider_specific_fields": {"token_ids": i}, "logprobs": words(i, lp)},
            prompt_token_ids=prompt,
        ),
        "trl": {
            "prompt_ids": [prompt],
            "completion_ids": [i for i, _ in samples],
            "logprobs": [lp for _, lp in samples],
        },
        "chat": chat_of(
            prompt,
            samples,
            lambda i, lp: {
                "message": {"content": "x", **token_fields(prompt, i, lp)},
                "token_ids": i,
                "logprobs": words(i, lp),
            },
            prompt_token_ids=prompt,
        ),
        "responses": {
            "object": "response",
            "output": [{"type": "message", "content": [], **token_fields(prompt, ids, log_probs)}],
        },
        "messages": {"type": "message", "role": "assistant", "content": [], **token_fields(prompt, ids, log_probs)},
    }
