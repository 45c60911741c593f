"""A small engine for runs without a model: chat completions in vLLM's words, ids a function of the conversation alone.

python engine.py PORT [DIRECTORY]

With a directory it does what a framework's worker does with a call that it is to stage: stages it there.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

GENERATED = 512
LETTERS = 4  # of text that an id stands for
WORDS = ("tide", "boat", "rope", "sail", "wind", "reef")


def words(seed: str, ids: int) -> str:
    """Text that `ids` ids stand for, another for each seed."""
    letters = LETTERS * ids
    return " ".join(random.Random(seed).choices(WORDS, k=letters // LETTERS))[:letters].ljust(letters, ".")


@cache
def message_ids(role: str, content: str) -> list[int]:
    """The ids of one message."""
    return random.Random(role + content).choices(range(151_936), k=len(content) // LETTERS)


@cache
def log_probs(content: str) -> list[float]:
    """The log-probs of what was generated."""
    drawn = random.Random(content)
    return [-drawn.expovariate(2.0) for _ in range(GENERATED)]


@cache
def texts(role: str, content: str) -> tuple[str, str]:
    """The ids of a message in JSON, and as what vLLM's log-probs say."""
    ids = message_ids(role, content)
    return ",".join(map(str, ids)), ",".join(
        f'{{"token":"token_id:{id_}","logprob":{log_prob!r},"bytes":null,"top_logprobs":[]}}'
        for id_, log_prob in zip(ids, log_probs(content), strict=False)
    )


class Reply:
    """What the engine says to a conversation.

    Args:
        messages: The conversation, each with `role` and `content`.
    """

    def __init__(self, messages: list[dict[str, str]]) -> None:
        self.messages = [(message["role"], message["content"]) for message in messages]
        self.name = hashlib.sha256(json.dumps(self.messages).encode()).hexdigest()[:16]
        self.content = words(self.name, GENERATED)

    def prompt(self) -> list[int]:
        """The ids of the conversation."""
        return [id_ for message in self.messages for id_ in message_ids(*message)]

    def generation(self) -> list[int]:
        """The ids that were sampled."""
        return message_ids("assistant", self.content)

    def log_probs(self) -> list[float]:
        """Their log-probs."""
        return log_probs(self.content)

    def body(self, model: str, more: dict[str, Any], *, echo: bool) -> bytes:
        """The response, with `more` at its top, and its ids where they were asked for."""
        size = sum(len(content) // LETTERS for _, content in self.messages)
        rest = {
            "id": f"chatcmpl-{self.name}",
            "object": "chat.completion",
            "created": 1_764_400_000,
            "model": model,
            "usage": {"prompt_tokens": size, "completion_tokens": GENERATED, "total_tokens": size + GENERATED},
            **more,
        }
        message = json.dumps({"role": "assistant", "content": self.content})
        choice = f'{{"index":0,"finish_reason":"stop","message":{message}'
        prompt = ""
        if echo:
            prompt = f',"prompt_token_ids":[{",".join(texts(*message)[0] for message in self.messages)}]'
            generation, tokens = texts("assistant", self.content)
            choice += f',"token_ids":[{generation}],"logprobs":{{"content":[{tokens}]}}'
        return f'{json.dumps(rest)[:-1]}{prompt},"choices":[{choice}}}]}}'.encode()


class Handler(BaseHTTPRequestHandler):
    """Answers chat completions."""

    protocol_version = "HTTP/1.1"
    worker: Any = None

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reply = Reply(request["messages"])
        more = self.worker.staged(request, reply) if "ng_capture" in request else {}
        self._answer(reply.body(request["model"], more, echo=request.get("return_token_ids", False)))

    def do_GET(self) -> None:
        self._answer(json.dumps({"seconds": self.worker.seconds if self.worker else 0.0}).encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Nothing: what is asked is no news."""

    def _answer(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def main() -> None:
    port, *directory = sys.argv[1:]
    if directory:
        from worker import Worker  # noqa: PLC0415 - it needs NeMo Gym, the engine alone does not

        Handler.worker = Worker(*directory)
    ThreadingHTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()


if __name__ == "__main__":
    main()
