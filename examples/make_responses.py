"""Makes served_responses.jsonl: what a model server answers, from a model small enough to stand in this file.

The model is a bigram model over bytes, trained on the sentences below; a token is a byte. It is sampled with a fixed
seed, so ids and log-probs are what an engine returns: the log-prob of each sampled id under the model's own softmax.

    python examples/make_responses.py > examples/served_responses.jsonl
"""

from __future__ import annotations

import itertools
import json
import math
import random
import sys

TEXT = (
    "the tide comes in and the boats go out. the moon pulls the sea and the sea pulls the boats. "
    "a record keeps the tokens of a call and a digest proves the record. the end of the call is the start of the next. "
)
END = 0  # the id that ends a message
SMOOTHING = 0.01
CREATED = 1_764_400_000  # seconds since the epoch: fixed, so that the file is the same each time


class Model:
    """Bigram counts over bytes."""

    def __init__(self, text: str, seed: int) -> None:
        self.random = random.Random(seed)
        ids = [*text.encode(), END]
        self.counts = {a: dict.fromkeys(sorted(set(ids)), SMOOTHING) for a in range(256)}
        for a, b in itertools.pairwise(ids):
            self.counts[a][b] += 1
        for a in b".":
            self.counts[a][END] += 1

    def generate(self, prompt: list[int], most: int = 60) -> tuple[list[int], list[float]]:
        """Sampled ids up to the end of the message, and the log-prob of each."""
        ids, log_probs, last = [], [], prompt[-1]
        while len(ids) < most and last != END:
            counts = self.counts[last]
            (last,) = self.random.choices(list(counts), list(counts.values()))
            ids.append(last)
            log_probs.append(math.log(counts[last] / math.fsum(counts.values())))  # the same on every Python
        return ids, log_probs


def text_of(ids: list[int]) -> str:
    return bytes(i for i in ids if i != END).decode()


def responses_payload(call: str, tokens: dict[str, list]) -> dict:
    """The shape of the Responses API, with the token fields on the message."""
    content = [{"type": "output_text", "text": text_of(tokens["generation_token_ids"]), "annotations": []}]
    message = {"type": "message", "role": "assistant", "status": "completed", "content": content, **tokens}
    reasoning = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "tides first, then boats"}]}
    output = [reasoning, message]
    return {"id": f"resp_{call}", "object": "response", "created_at": CREATED, "model": "bigram", "output": output}


def chat_payload(call: str, tokens: dict[str, list]) -> dict:
    """The shape of Chat Completions, with the token fields on the message."""
    message = {"role": "assistant", "content": text_of(tokens["generation_token_ids"]), **tokens}
    choice = {"index": 0, "finish_reason": "stop", "message": message}
    head = {"id": f"chatcmpl-{call}", "object": "chat.completion", "created": CREATED, "model": "bigram"}
    return {**head, "choices": [choice]}


def main() -> None:
    model = Model(TEXT, seed=7)
    system = b"<system>answer like the sea.<user>"
    rollouts = {
        "tide-0": (responses_payload, ["when does the tide come in?", "and the boats?", "what pulls them?"]),
        "tide-1": (responses_payload, ["when does the tide come in?", "and the moon?"]),
        "proof-0": (chat_payload, ["what keeps the tokens?", "what proves it?", "where does it start?"]),
        "proof-1": (chat_payload, ["what keeps the tokens?", "<summary>", "what proves it?"]),
    }
    for rollout_id, (payload, questions) in rollouts.items():
        sequence = list(system)
        for turn, question in enumerate(questions):
            if question == "<summary>":
                # The agent replaces its history: what follows continues no captured call.
                sequence = list(b"<system>answer like the sea.<user>we spoke of tokens.")
                continue
            prompt = [*sequence, *question.encode(), *b"<assistant>"]
            ids, log_probs = model.generate(prompt)
            tokens = {"prompt_token_ids": prompt, "generation_token_ids": ids, "generation_log_probs": log_probs}
            call = f"{rollout_id}-{turn}"
            row = {"rollout_id": rollout_id, "model_call_id": f"call-{turn}", "response": payload(call, tokens)}
            json.dump(row, sys.stdout)
            print()
            sequence = [*prompt, *ids, *b"<user>"]


if __name__ == "__main__":
    main()
