"""Draws docs/images/report.png: the page of made-up rollouts of an agent that calculates.

python benches/report_picture.py [FOLDER]

The page and pictures of each view, light and dark, go to FOLDER where one is given. Needs the extra `report`, selenium
and Chromium with its driver.
"""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
from tokenrecords import TokenEntry, link_entries
from tokenrecords.report import write_report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.browser import Browser

PICTURE = Path(__file__).parent.parent / "docs" / "images" / "report.png"
SIZE = (1440, 1000)
SHOWN = 3  # the rollout of the picture

SYSTEM = "<|system|>You solve problems step by step, and may call the tool `calc`.<|end|>\n"
PROBLEMS = [
    "A ferry takes 46 cars on each crossing. How many cars cross on 17 crossings?",
    "A roll has 38 metres of rope, and 6 boats need 5.5 metres each. How much rope is left?",
    "The tide rises 4 cm every 3 minutes. By how much does it rise in 2 hours?",
]
ANSWERS = [("46 * 17", "782"), ("38 - 6 * 5.5", "5.0"), ("2 * 60 / 3 * 4", "160.0")]
THOUGHT = "I need one product here.\nLet me ask the tool rather than trust my head.\n"
SPLIT = "\N{ALMOST EQUAL TO}"


class Words:
    """A tokenizer of whole words; one sign is two tokens, each of which is a part of its bytes."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def encode(self, text: str) -> list[int]:
        found = re.findall(r"<\|\w+\|>|\n+| ?[^\W\d]+| ?\d|[^\w\s]| ", text)
        pieces = [part for each in found for part in (("âī", "Ī") if each == SPLIT else (_byte_level(each),))]
        return [self.ids.setdefault(piece, 1_000 + 37 * len(self.ids)) for piece in pieces]

    def write(self, path: Path) -> None:
        added = [{"id": number, "content": piece} for piece, number in self.ids.items() if piece.startswith("<|")]
        path.write_text(
            json.dumps({"model": {"vocab": self.ids}, "added_tokens": added, "decoder": {"type": "ByteLevel"}})
        )


def _byte_level(piece: str) -> str:
    return piece.replace(" ", "Ġ").replace("\n", "Ċ")


class Agent:
    """Rollouts of calls whose log-probs look like those of a model that is sure of most words."""

    def __init__(self, words: Words) -> None:
        self.words = words
        self.random = random.Random(5)

    def call(self, rollout: str, name: str, prompt: list[int], text: str, **more: object) -> TokenEntry:
        ids = self.words.encode(text)
        log_probs = [-min(self.random.expovariate(1.1) ** 3, 9.0) * self.random.random() for _ in ids]
        return TokenEntry(
            rollout_id=rollout,
            model_call_id=name,
            model="tide-8b",
            prompt_token_ids=np.array(prompt, np.int32),
            generation_token_ids=np.array(ids, np.int32),
            generation_log_probs=np.array([min(value, -1e-6) for value in log_probs]),
            output_items=[{"type": "message", "content": [{"type": "output_text", "text": text}]}],
            response_id=f"resp-{rollout}-{name}",
            created_at=1_764_400_000.0 + self.random.random() * 900,
            **more,
        )

    def rollout(self, number: int) -> list[TokenEntry]:
        """Thought and call of the tool, answer, check; every fourth with a fork and every fifth with a break."""
        rollout = f"ferry-{number:03}"
        which = number % len(PROBLEMS)
        sum_, result = ANSWERS[which]
        version = 41 + number % 3
        prompt = self.words.encode(f"{SYSTEM}<|user|>{PROBLEMS[which]}<|end|>\n<|assistant|>")
        think = self.call(rollout, "think", prompt, f'{THOUGHT}<|call|>calc("{sum_}")<|end|>', weight_version=version)
        calls = [think]
        after = [*prompt, *think.generation_token_ids.tolist()]
        after += self.words.encode(f"\n<|tool|>{result}<|end|>\n<|assistant|>")
        said = f"The tool says {SPLIT} {result}.\n<|tool|>{result}<|end|>So the answer is {result}.<|end|>"
        answer = self.call(rollout, "answer", after, said, weight_version=version)
        start = next(i for i, each in enumerate(answer.generation_token_ids) if each == self.words.ids["<|tool|>"])
        mask = np.ones(len(answer.generation_token_ids), np.bool_)
        mask[start : start + len(result) + 2] = False
        calls.append(answer.model_copy(update={"generation_loss_mask": mask}))
        if number % 4 == 3:
            other = self.call(rollout, "answer-again", after, f"It is {result}.<|end|>", weight_version=version + 1)
            calls.append(other)
        check = [*after, *answer.generation_token_ids.tolist(), *self.words.encode("\n<|user|>Are you sure?<|end|>")]
        if number % 5 == 3:
            check[len(prompt) + 2 : len(prompt) + 3] = self.words.encode(" a single")
        if number % 7 != 6:
            calls.append(self.call(rollout, "check", check, f"Yes: {sum_} = {result}.<|end|>", weight_version=version))
        if number % 11 == 8:
            calls[-1].generation_log_probs[2] = math.nan
        return calls


def example(folder: Path) -> Path:
    """The page of the example, and what it is made of."""
    words = Words()
    agent = Agent(words)
    entries = link_entries([entry for number in range(48) for entry in agent.rollout(number)])
    words.write(folder / "tokenizer.json")
    write_report(entries, folder / "report.html", tokenizer=folder / "tokenizer.json")
    return folder / "report.html"


def pictures(page: Path, folder: Path) -> None:
    """The views of the page, light and dark."""
    for scheme in ("light", "dark"):
        driver = Browser(width=SIZE[0], height=SIZE[1], scheme=scheme)
        try:
            for view, address in {"overview": "#/", "rollout": f"#/{SHOWN}/1/47"}.items():
                driver.get("about:blank")
                driver.get(page.as_uri() + address)
                driver.settle()
                driver.run("scrollTo(0, 0);")
                driver.settle()
                driver.save_screenshot(str(folder / f"{view}-{scheme}.png"))
        finally:
            driver.quit()


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(sys.argv[1] if len(sys.argv) > 1 else temporary)
        folder.mkdir(parents=True, exist_ok=True)
        pictures(example(folder), folder)
        shutil.copy(folder / "rollout-light.png", PICTURE)


if __name__ == "__main__":
    main()
