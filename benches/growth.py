"""CPU time against the number of things, for every public function that takes many.

`python benches/growth.py [most [name ...]]` prints, of each case, the milliseconds at a quarter, a half and all of so
many things, and how many times as long the last doubling took: 2 is linear. Of deltas, the n sequences that they stand
for have n times n ids, all of which are hashed or joined.
"""

from __future__ import annotations

import gc
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenrecords import (
    TokenEntry,
    append_jsonl,
    build_chains,
    build_rollouts,
    compute_digests,
    entries_from_response,
    entries_from_rollout,
    entries_from_transcript,
    expand_deltas,
    group_by_rollout,
    link_entries,
    merge_stream,
    pack_chains,
    read_jsonl,
    read_response,
    resolve_parent,
    stamp_lineage,
    verify,
    write_jsonl,
)

Run = Callable[[], Any]
MOST: Final = 4_000
_IDS: Final = (3, 1, 4, 1, 5)


def call(name: str, prompt: Any, generation: Any = (7,), *, rollout: str = "r", **fields: Any) -> TokenEntry:
    """A record of a call."""
    return TokenEntry(
        rollout_id=rollout,
        model_call_id=name,
        prompt_token_ids=np.array(prompt, np.int32),
        generation_token_ids=np.array(generation, np.int32),
        generation_log_probs=np.full(len(generation), -0.5),
        **fields,
    )


def root(name: str, prompt: Any, generation: Any = (7,), *, rollout: str = "r", **fields: Any) -> TokenEntry:
    """A record that is stamped as a first call."""
    return stamp_lineage(call(name, prompt, generation, rollout=rollout, **fields), None, "root")


def child(name: str, parent: str, prompt: Any, generation: Any = (7,), **fields: Any) -> TokenEntry:
    """A record that says which call it continues."""
    return call(name, prompt, generation, parent_call_id=parent, parent_resolution="resolved", **fields)


def delta(name: str, parent: str, new: Any = (8,)) -> TokenEntry:
    """A record that has of its prompt what is new."""
    return child(name, parent, new, prompt_is_delta=True)


def alone(n: int) -> list[TokenEntry]:
    """A rollout each."""
    return [root("c", [i, *_IDS], rollout=f"r{i}") for i in range(n)]


def lost(n: int) -> list[TokenEntry]:
    """Rollouts of two calls, the second of which continues none."""
    seconds = (stamp_lineage(call("d", [i, *_IDS, 9, 9], rollout=f"r{i}"), None, "unresolved") for i in range(n // 2))
    return [entry for pair in zip(alone(n // 2), seconds, strict=True) for entry in pair]


def roots(n: int) -> list[TokenEntry]:
    """First calls of one rollout."""
    return [root(f"c{i}", [i, *_IDS]) for i in range(n)]


def orphans(n: int) -> list[TokenEntry]:
    """Equal calls, and as many that name a parent that is not there."""
    first = [root(f"p{i}", _IDS) for i in range(n // 2)]
    return first + [child(f"q{i}", "gone", (*_IDS, 7, 9)) for i in range(n // 2)]


def turns(n: int) -> list[TokenEntry]:
    """Calls that continue each other, one id each, as deltas: full prompts alone would be quadratic."""
    return [root("c0", _IDS), *(delta(f"c{i}", f"c{i - 1}") for i in range(1, n))]


def comb(n: int) -> list[TokenEntry]:
    """Deltas that continue each other, and one more that continues each of them."""
    spine = turns(n // 2)
    return spine + [delta(f"t{i}", f"c{i}", (9, i)) for i in range(n // 2)]


def spoiled(n: int) -> list[TokenEntry]:
    """Deltas that continue each other up to one whose ids no dtype holds together with the others."""
    entries = turns(n)
    entries[-1].prompt_token_ids, entries[n // 2].prompt_token_ids = np.array([2**63], np.uint64), np.array([-1])
    return entries


def star(n: int) -> list[TokenEntry]:
    """Calls that all continue the first."""
    return [root("c", _IDS), *(child(f"d{i}", "c", (*_IDS, 7, i)) for i in range(n))]


def retries(n: int) -> list[TokenEntry]:
    """The same call again and again, each of them continued."""
    first = [root(f"p{i}", _IDS, (i,)) for i in range(n // 2)]
    return first + [child(f"q{i}", f"p{i}", (*_IDS, i, 9)) for i in range(n // 2)]


def equals(n: int) -> list[TokenEntry]:
    """One call, recorded many times."""
    return [root("c", _IDS) for _ in range(n)]


def broken(n: int) -> list[TokenEntry]:
    """Calls of one prompt, and as many that break off from them."""
    first = [root(f"p{i}", _IDS, (i, 1, 2)) for i in range(n // 2)]
    return first + [stamp_lineage(call(f"q{i}", (*_IDS, i, 1, 3)), None, "unresolved") for i in range(n // 2)]


ENTRIES: Final = {
    make.__name__: make for make in (alone, lost, roots, orphans, turns, comb, spoiled, star, retries, equals, broken)
}
# What has rollouts of its own is nothing for a function that takes one.
MANY: Final = ("alone", "lost")


def message(i: int, content: str = "") -> dict[str, Any]:
    """An item of a transcript that carries the tokens of a call."""
    tokens = {"prompt_token_ids": [i, *_IDS], "generation_token_ids": [7], "generation_log_probs": [-0.5]}
    return {"type": "message", "role": "assistant", "content": content, **tokens}


def answers(n: int) -> list[dict[str, Any]]:
    """The items of a transcript: a call, then what its tool answers."""
    return [item for i in range(n // 2) for item in (message(i), {"type": "function_call_output", "output": "4"})]


def chat(delta: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A chunk of a stream of chat."""
    return {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, **more}]}


def argument(index: int, *, first: bool) -> dict[str, Any]:
    """A piece of the arguments of a call."""
    named = {"id": f"t{index}", "type": "function"} if first else {}
    function = {"name": "f", "arguments": "x"} if first else {"arguments": "x"}
    return chat({"tool_calls": [{"index": index, **named, "function": function}]})


def grown(i: int, *, whole: bool) -> dict[str, Any]:
    """A chunk of SGLang: a piece, or all that has come so far."""
    start = 0 if whole else i
    triples = [[-0.5, id_, None] for id_ in range(start, i + 1)]
    meta = {"id": "x", "completion_tokens": i + 1, "output_token_logprobs": triples, "finish_reason": None}
    return {"text": "x" * len(triples), "output_ids": list(range(start, i + 1)), "meta_info": meta}


STREAMS: Final[dict[str, Callable[[int], list[dict[str, Any]]]]] = {
    "content": lambda n: [chat({"content": "x"}, token_ids=[i]) for i in range(n)],
    "arguments of one call": lambda n: [argument(0, first=not i) for i in range(n)],
    "calls": lambda n: [argument(i, first=True) for i in range(n)],
    "choices": lambda n: [{"choices": [{"index": i, "text": "x", "token_ids": [i]}]} for i in range(n)],
    "pieces of SGLang": lambda n: [grown(i, whole=False) for i in range(n)],
}


def response(n: int) -> dict[str, Any]:
    """A response of so many choices."""
    choices = [{"index": i, "text": "x", "token_ids": [i], "logprobs": {"token_logprobs": [-0.5]}} for i in range(n)]
    return {"object": "text_completion", "prompt_token_ids": list(_IDS), "choices": choices}


def session(n: int, *, known: bool) -> Run:
    """Find the parent of a call among so many earlier ones, as a gateway keeps them; of a known call, or of none."""
    earlier = [
        stamp_lineage(call(f"c{i}", [i]), None, "unresolved").model_copy(
            update={"prompt_token_ids": [], "generation_token_ids": [], "prompt_is_delta": True}
        )
        for i in range(n)
    ]
    return partial(resolve_parent, call("c", [n // 2 if known else -1 + 2**31, 7, 9, *range(1_000)]), earlier)


def file_of(entries: list[TokenEntry], suffix: str = "") -> Path:
    """A file of records, kept until the process ends."""
    path = Path(_FOLDER.name) / f"{len(list(Path(_FOLDER.name).iterdir()))}.tokens.jsonl{suffix}"
    write_jsonl(path, entries)
    return path


_FOLDER: Final = tempfile.TemporaryDirectory()


def appends(n: int) -> Run:
    """Append records to a file one at a time."""
    entries, path = roots(n), file_of([])
    return lambda: [append_jsonl(path, [entry], fsync=False) for entry in entries]


def cases() -> Iterator[tuple[str, Callable[[int], Run]]]:
    """Each case: what makes the run on n things."""
    for name, make in ENTRIES.items():
        of = [verify, link_entries, expand_deltas]
        for function in [*of, *([] if name in MANY else [build_chains])]:
            yield f"{function.__name__}, {name}", lambda n, f=function, make=make: partial(f, make(n))
    yield "rows, star", lambda n: build_chains(star(n)).rows
    yield "build_rollouts, alone", lambda n: partial(all_of, build_rollouts, alone(n))
    yield "pack_chains, one bin", lambda n: partial(pack_chains, chains_of(n))
    yield "pack_chains, a bin each", lambda n: partial(pack_chains, chains_of(n), max_tokens=8)
    yield "padded, alone", lambda n: partial(pack_chains(chains_of(n)).padded, pad_id=0)
    yield "group_by_rollout, alone", lambda n: partial(group_by_rollout, alone(n))
    yield "resolve_parent, one of the session", partial(session, known=True)
    yield "resolve_parent, none of the session", partial(session, known=False)
    yield "compute_digests, arrays", lambda n: partial(compute_digests, [np.arange(i, i + 9) for i in range(n)])
    yield "compute_digests, lists", lambda n: partial(compute_digests, [list(range(i, i + 9)) for i in range(n)])
    yield "read_jsonl, roots", lambda n: partial(read_jsonl, file_of(roots(n)))
    yield (
        "read_jsonl, compressed",
        lambda n: partial(read_jsonl, file_of(roots(n), ".gz")),
    )
    yield "read_jsonl, files", lambda n: partial(read_jsonl, [file_of([entry]) for entry in roots(n // 8)])
    yield "write_jsonl, roots", lambda n: partial(write_jsonl, io.BytesIO(), roots(n))
    yield "append_jsonl, one at a time", appends
    yield "verify, a file", lambda n: partial(verify, file_of(roots(n)))
    yield "read_response, choices", lambda n: partial(read_response, response(n))
    yield (
        "entries_from_response, choices",
        lambda n: partial(entries_from_response, response(n), rollout_id="r", model_call_id="c", parent=None),
    )
    yield (
        "entries_from_transcript, answers",
        lambda n: partial(entries_from_transcript, {"output": answers(n)}, rollout_id="r"),
    )
    yield (
        "entries_from_transcript, items of one call",
        lambda n: partial(
            entries_from_transcript,
            {"output": [*[{"type": "reasoning", "summary": []}] * n, message(0)]},
            rollout_id="r",
        ),
    )
    yield (
        "entries_from_rollout, answers",
        lambda n: partial(entries_from_rollout, {"_ng_rollout_id": "r", "response": {"id": "x", "output": answers(n)}}),
    )
    for name, make in STREAMS.items():
        yield f"merge_stream, {name}", lambda n, make=make: partial(merge_stream, make(n))
        yield f"merge_stream, {name} as bytes", lambda n, make=make: partial(merge_stream, events(make(n)))


def chains_of(n: int) -> list[Any]:
    """Chains of eight ids or fewer, of a rollout each."""
    return [build_chains([root("c", range(i % 3 + 1), range(4), rollout=f"r{i}")]).main for i in range(n)]


def all_of(function: Callable[[Any], Iterator[Any]], given: Any) -> list[Any]:
    """All that a function's iterator gives."""
    return list(function(given))


def events(chunks: list[dict[str, Any]]) -> bytes:
    """A stream of them."""
    return b"".join(b"data: %s\n\n" % json.dumps(chunk).encode() for chunk in chunks)


def seconds(run: Run) -> float:
    """CPU seconds of this process, all its threads together."""
    gc.collect()
    gc.freeze()  # what is given is not walked through again and again
    start = time.process_time()
    run()
    took = time.process_time() - start
    gc.unfreeze()
    return took


def main(most: int, names: list[str]) -> None:
    print("| case | n | ms at n/4 | ms at n/2 | ms at n | last doubling |\n|---|---|---|---|---|---|")
    for name, make in cases():
        if names and not any(part in name for part in names):
            continue
        make(16)()
        took = [min(seconds(run) for run in (make(n), make(n))) for n in (most // 4, most // 2, most)]
        columns = " | ".join(f"{1000 * each:.1f}" for each in took)
        print(f"| {name} | {most:,} | {columns} | {took[2] / max(took[1], 1e-9):.1f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MOST, sys.argv[2:])
