"""Agents without a sandbox: rollouts of several turns with a model server, over its HTTP API."""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from engine import GENERATED, words


@dataclass(frozen=True)
class Load:
    """What the agents ask for.

    Attributes:
        task: What the rollouts are named after.
        rollouts: How many run at once.
        turns: The calls of each.
        ids: How many ids its full sequence has at the end.
    """

    task: str
    rollouts: int = 8
    turns: int = 8
    ids: int = 32_768

    @property
    def calls(self) -> int:
        """The calls of all of them."""
        return self.rollouts * self.turns

    def names(self) -> list[str]:
        """The rollouts' ids."""
        return [f"{self.task}-{rollout}" for rollout in range(self.rollouts)]


def run(url: str, load: Load) -> None:
    """Run the rollouts, each in a thread."""
    with ThreadPoolExecutor(load.rollouts) as pool:
        list(pool.map(lambda name: converse(url, name, load), load.names()))


def converse(url: str, rollout: str, load: Load) -> None:
    """Run one rollout: each turn asks something more, after all that was said."""
    messages = []
    for turn in range(load.turns):
        question = words(f"{rollout} {turn}", load.ids // load.turns - GENERATED)
        messages.append({"role": "user", "content": question})
        body = json.dumps({"model": "policy", "messages": messages}).encode()
        target = f"{url}/ng-rollout/{rollout}/training-token-capture/v1/chat/completions"
        request = urllib.request.Request(target, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            said = json.load(answer)["choices"][0]["message"]
        messages.append({"role": "assistant", "content": said["content"]})
