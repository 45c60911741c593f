"""Rollouts of all kinds, captured by NeMo Gym 0.7.0 and judged by it: `python gym_scenarios.py OUT.json`.

Needs that package, and so Python 3.13; `nox -s scenarios` runs it. Each rollout is captured through that package's own
steps of a served call (resolve the parent, note the call, capture the answer), and then finalized. One JSON object a
line: the files of a capture, and how it was judged with the response that was scored, and without.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from nemo_gym.token_id_capture import delivery, sink
from nemo_gym.token_id_capture.lineage import FileLineageStore
from nemo_gym.token_id_capture.store import TokenCaptureStore

if TYPE_CHECKING:
    from collections.abc import Callable

Items = list[dict[str, Any]]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(response_id: str) -> dict[str, Any]:
    """What the model said in a response."""
    text = {"type": "output_text", "text": f"answer {response_id}", "annotations": []}
    return {"type": "message", "role": "assistant", "id": f"m-{response_id}", "status": "completed", "content": [text]}


class Rollout:
    """A rollout as the agent drives it; call `x` has the response `resp-x`.

    Args:
        root: The directory of the capture.
        rollout_id: `<task>-<rollout>`.
        delta: True to store what a prompt adds to its parent.
    """

    def __init__(self, root: Path, rollout_id: str, *, delta: bool) -> None:
        self.id = rollout_id
        self.store = TokenCaptureStore(root)
        self.lineage = FileLineageStore(root)
        self.delta = delta
        self.ids = 0

    def new(self, count: int) -> list[int]:
        """Ids that no other call has."""
        self.ids += count
        return list(range(self.ids - count, self.ids))

    async def call(
        self, call: str, items: Items, prompt: list[int], *, tokens: bool = True, dies: bool = False
    ) -> list[int]:
        """Serve a call.

        Args:
            call: Its id.
            items: The conversation, as the agent sends it.
            prompt: The ids of its prompt.
            tokens: False where the response carries none.
            dies: True where the server is killed, or the engine fails, before the answer is there.

        Returns:
            The ids of prompt and generation.
        """
        generation = self.new(3)
        context = sink.CaptureContext(
            rollout_id=self.id,
            model_call_id=call,
            token_sink=self.store,
            lineage_store=self.lineage,
            delta_records=self.delta,
        )
        token = sink.set_token_sink(context)
        try:
            await sink.resolve_parent(items)
            await sink.register_call_intent()
            if not dies:
                item = answer(f"resp-{call}")
                if tokens:
                    item["prompt_token_ids"] = prompt
                    item["generation_token_ids"] = generation
                    item["generation_log_probs"] = [-0.5, -0.25, -0.125]
                response = {
                    "id": f"resp-{call}",
                    "object": "response",
                    "created_at": 1.0,
                    "model": "m",
                    "output": [item],
                }
                await sink.capture_tokens(response, items)
        finally:
            sink.reset_token_sink(token)
        return [*prompt, *generation]

    async def turns(self, calls: str, items: Items | None = None) -> tuple[Items, list[int]]:
        """Serve calls that continue each other; the conversation and the ids then."""
        items, ids = items or [user("the task")], self.new(4)
        for call in calls:
            ids = await self.call(call, items, ids)
            items = [*items, answer(f"resp-{call}"), user(f"a tool's answer to {call}")]
            ids = [*ids, *self.new(2)]
        return items, ids


async def plain(rollout: Rollout) -> str:
    await rollout.turns("abc")
    return "c"


async def lost_in_between(rollout: Rollout) -> str:
    items, ids = await rollout.turns("a")
    ids = await rollout.call("b", items, ids, dies=True)
    await rollout.call("c", [*items, answer("resp-b"), user("and now?")], [*ids, *rollout.new(2)])
    return "c"


async def lost_at_the_end(rollout: Rollout) -> str:
    items, ids = await rollout.turns("ab")
    await rollout.call("c", items, ids, dies=True)
    return "c"


async def lost_and_nothing_else(rollout: Rollout) -> str:
    await rollout.call("a", [user("the task")], rollout.new(4), dies=True)
    return "a"


async def lost_beside_the_end(rollout: Rollout) -> str:
    items, ids = await rollout.turns("a")
    await rollout.call("title", [user("a title, please")], rollout.new(3), dies=True)
    await rollout.call("b", items, ids)
    return "b"


async def context_overflow(rollout: Rollout) -> str:
    """The last answer is one that the server makes up: the prompt was too long."""
    items, ids = await rollout.turns("ab")
    await rollout.call("c", items, ids, tokens=False)
    return "c"


async def context_overflow_then_shorter(rollout: Rollout) -> str:
    items, ids = await rollout.turns("ab")
    await rollout.call("c", items, ids, tokens=False)
    await rollout.call("d", [user("the task, shortened")], rollout.new(5))
    return "d"


async def sub_agent(rollout: Rollout) -> str:
    items, ids = await rollout.turns("a")
    await rollout.turns("xy", [user("the sub-agent's task")])
    await rollout.call("b", items, ids)
    return "b"


async def compacted_context(rollout: Rollout) -> str:
    """The history becomes a summary, and the conversation goes on from there."""
    items, ids = await rollout.turns("ab")
    await rollout.call("s", [*items, user("summarize")], [*ids, *rollout.new(2)])
    await rollout.turns("cd", [user("the task; so far: a summary")])
    return "d"


async def shortened_context(rollout: Rollout) -> str:
    """The first turns are left out, and the last answer is kept: nothing proves what it continues."""
    await rollout.turns("ab")
    await rollout.call("c", [user("the task"), answer("resp-b"), user("go on")], rollout.new(9))
    return "c"


async def retry(rollout: Rollout) -> str:
    """The agent asks once more, and goes on with the second answer."""
    items, ids = await rollout.turns("a")
    await rollout.call("b", items, ids)
    again = await rollout.call("b2", items, ids)
    await rollout.call("c", [*items, answer("resp-b2"), user("and now?")], [*again, *rollout.new(2)])
    return "c"


async def retry_at_the_end(rollout: Rollout) -> str:
    items, ids = await rollout.turns("a")
    await rollout.call("b", items, ids)
    await rollout.call("b2", items, ids)
    return "b2"


async def retry_of_a_lost_call(rollout: Rollout) -> str:
    items, ids = await rollout.turns("a")
    await rollout.call("b", items, ids, dies=True)
    await rollout.call("b2", items, ids)
    return "b2"


SCENARIOS: Final = (
    plain,
    lost_in_between,
    lost_at_the_end,
    lost_and_nothing_else,
    lost_beside_the_end,
    context_overflow,
    context_overflow_then_shorter,
    sub_agent,
    compacted_context,
    shortened_context,
    retry,
    retry_at_the_end,
    retry_of_a_lost_call,
)


async def judged(
    root: Path, scenario: Callable[[Rollout], Any], place: int, *, delta: bool, known: bool
) -> tuple[dict[str, str], dict[str, Any]]:
    """A rollout's files before it is finalized; and by what it was judged, the row then, what was retired."""
    rollout = Rollout(root, f"{place}-0", delta=delta)
    last = await scenario(rollout)
    terminal = f"resp-{last}" if known else None
    files = contents(root)
    response = {"id": terminal or "another", "object": "response", "created_at": 1.0, "model": "m", "output": []}
    row = {"_ng_task_index": place, "_ng_rollout_index": 0, "reward": 1.0, "response": response}
    built = await delivery.finalize_rollout_token_capture(row, rollout.store)
    is_retired = await delivery.retire_rollout_token_capture(rollout.id, rollout.store, built)
    retired = contents(root) if is_retired else {}
    return files, {"terminal_response_id": terminal, "row": row, "retired": retired}


def contents(root: Path) -> dict[str, str]:
    """The files of a capture, but for the locks, which are empty."""
    return {path.name: path.read_text() for path in sorted(root.iterdir()) if path.suffix != ".lock"}


def main() -> None:
    """Make all of them, and write one JSON object a line."""
    warnings.simplefilter("ignore")
    lines = []
    for place, scenario in enumerate(SCENARIOS):
        for delta in (False, True):
            judgements = []
            for known in (True, False):
                with tempfile.TemporaryDirectory() as name:
                    files, judgement = asyncio.run(judged(Path(name), scenario, place, delta=delta, known=known))
                judgements.append(judgement)
            made = {"scenario": scenario.__name__, "delta": delta, "rollout_id": f"{place}-0", "files": files}
            lines.append(json.dumps({**made, "judgements": judgements}, separators=(",", ":")))
    Path(sys.argv[1]).write_text("".join(line + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
