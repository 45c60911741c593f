"""The official `openai` client against a local server: its objects are captured as the server sent them."""

import json
import threading
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tokenrecords import detect_dialect, entries_from_response, merge_stream, read_response

openai = pytest.importorskip("openai")

PROMPT, IDS, LOG_PROBS = [1, 7, 9], [41, 50, 2], [-0.125, -0.25, -0.5]
WORDS = ["o", "k", "!"]
USAGE = {"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6}


def entry(k: int) -> dict[str, Any]:
    return {"token": f"token_id:{IDS[k]}", "logprob": LOG_PROBS[k], "bytes": None, "top_logprobs": []}


def chat() -> dict[str, Any]:
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "stop_reason": None,
        "token_ids": IDS,
        "routed_experts": "k05VTVBZ",
        "message": {"role": "assistant", "content": "ok!", "reasoning": None, "tool_calls": []},
        "logprobs": {"content": [entry(k) for k in range(3)]},
    }
    return {
        "id": "chatcmpl-9",
        "object": "chat.completion",
        "created": 1700000000,
        "model": "m",
        "choices": [choice],
        "usage": USAGE,
        "prompt_logprobs": None,
        "prompt_token_ids": PROMPT,
        "kv_transfer_params": None,
    }


def chat_chunks() -> Iterator[dict[str, Any]]:
    head = {"id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 1700000000, "model": "m"}
    first = {
        "index": 0,
        "delta": {"role": "assistant", "content": ""},
        "logprobs": None,
        "finish_reason": None,
    }
    yield {**head, "choices": [first], "prompt_token_ids": PROMPT}
    for k in range(3):
        choice = {
            "index": 0,
            "delta": {"content": WORDS[k]},
            "logprobs": {"content": [entry(k)]},
            "finish_reason": "stop" if k == 2 else None,
            "token_ids": [IDS[k]],
            **({"routed_experts": "k05VTVBZ"} if k == 2 else {}),
        }
        yield {**head, "choices": [choice]}
    yield {**head, "choices": [], "usage": USAGE}


def completion() -> dict[str, Any]:
    logprobs = {
        "tokens": [f"token_id:{i}" for i in IDS],
        "token_logprobs": LOG_PROBS,
        "top_logprobs": [None, None, None],
        "text_offset": [0, 1, 2],
    }
    choice = {
        "index": 0,
        "text": "ok!",
        "finish_reason": "length",
        "logprobs": logprobs,
        "token_ids": IDS,
        "prompt_token_ids": PROMPT,
    }
    head = {"id": "cmpl-9", "object": "text_completion", "created": 1700000000, "model": "m"}
    return {**head, "choices": [choice], "usage": USAGE}


def response() -> dict[str, Any]:
    text = {"type": "output_text", "text": "ok!", "annotations": [], "logprobs": None}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [text],
        "prompt_token_ids": PROMPT,
        "generation_token_ids": IDS,
        "generation_log_probs": LOG_PROBS,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1700000000,
        "model": "m",
        "status": "completed",
        "output": [{"id": "rs_1", "type": "reasoning", "summary": []}, message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def response_events() -> Iterator[dict[str, Any]]:
    whole = response()
    yield {
        "type": "response.created",
        "sequence_number": 0,
        "response": {**whole, "status": "in_progress", "output": []},
    }
    delta = {"item_id": "msg_1", "output_index": 1, "content_index": 0, "logprobs": []}
    for k, word in enumerate(WORDS):
        yield {"type": "response.output_text.delta", "sequence_number": k + 1, "delta": word, **delta}
    yield {"type": "response.completed", "sequence_number": 4, "response": whole}


class Handler(BaseHTTPRequestHandler):
    """Answers as vLLM's server and as a Responses server that keeps the token fields on its items."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.endswith("/chat/completions"):
            assert request["return_token_ids"] is True
            plain, parts = chat(), chat_chunks()
        elif self.path.endswith("/completions"):
            plain, parts = completion(), iter(())
        else:
            plain, parts = response(), response_events()
        if request.get("stream"):
            body = b": hello\n\n" + b"".join(self.event(part) for part in parts) + b"data: [DONE]\n\n"
        else:
            body = json.dumps(plain).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream" if request.get("stream") else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def event(part: dict[str, Any]) -> bytes:
        name = f"event: {part['type']}\n" if "type" in part else ""
        return f"{name}data: {json.dumps(part)}\n\n".encode()

    def log_message(self, *args: Any) -> None:
        """Keep the test's output clean."""


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with openai.OpenAI(base_url=f"http://127.0.0.1:{server.server_port}/v1", api_key="none", max_retries=0) as held:
        yield held
    server.shutdown()
    server.server_close()


CHAT = {
    "model": "m",
    "messages": [{"role": "user", "content": "hi"}],
    "logprobs": True,
    "extra_body": {"return_token_ids": True, "return_tokens_as_token_ids": True},
}


def check(payload: Any, dialect: str, finish_reason: str, **expected: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert detect_dialect(payload) == dialect
        [choice] = read_response(payload)
        [record] = entries_from_response(payload, rollout_id="r", model_call_id="c", parent=None)
    assert (choice.prompt_token_ids, choice.generation_token_ids) == (PROMPT, IDS)
    assert choice.generation_log_probs == LOG_PROBS
    assert (record.cum_len, record.created_at, record.model) == (6, 1700000000.0, "m")
    assert (record.finish_reason, choice.finish_reason) == (finish_reason, finish_reason)
    assert not {"token_ids", "generation_token_ids"} & record.output_items[record.token_item_index].keys()
    for name, value in expected.items():
        assert getattr(record, name) == value


def test_chat(client):
    check(client.chat.completions.create(**CHAT), "vllm-chat", "stop", routed_experts="k05VTVBZ")


def test_chat_streamed(client):
    merged = merge_stream(client.chat.completions.create(**CHAT, stream=True))
    assert merged["choices"][0]["message"]["content"] == "ok!"
    check(merged, "vllm-chat", "stop", routed_experts="k05VTVBZ", response_id="chatcmpl-9")


def test_chat_lines(client):
    with client.chat.completions.with_streaming_response.create(**CHAT, stream=True) as raw:
        check(merge_stream(raw.iter_lines()), "vllm-chat", "stop", routed_experts="k05VTVBZ")


def test_completion(client):
    check(client.completions.create(model="m", prompt="hi", logprobs=1), "vllm-completions", "length")


def test_response(client):
    check(client.responses.create(model="m", input="hi"), "responses", "completed", token_item_index=1)


def test_response_streamed(client):
    *_, last = client.responses.create(model="m", input="hi", stream=True)
    assert last.type == "response.completed"
    check(last.response, "responses", "completed", token_item_index=1, response_id="resp_1")
