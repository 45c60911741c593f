"""What a framework's worker does with a call that it is to stage: seals it, and makes it durable before it answers."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nemo_gym.token_id_capture.staging.capture import RolloutTokenCapture
from nemo_gym.token_id_capture.staging.records import (
    CaptureAdmission,
    StagedCallRecord,
    StagedCallSnapshot,
    StageResult,
)

if TYPE_CHECKING:
    from engine import Reply


class Sink:
    """Staged calls in files, one each.

    Args:
        directory: Where the files are.
    """

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        self._names: dict[str, str] = {}

    def stage(self, record: StagedCallRecord) -> StageResult:
        """Write a call; the calls of a rollout are numbered."""
        number = len(list(self._directory.glob(f"{record.rollout_id}.*")))
        name = self._names[record.staging_key] = f"{record.rollout_id}.{number}.json"
        (self._directory / name).write_text(record.model_dump_json(), encoding="utf-8")
        return StageResult(ok=True, staging_key=record.staging_key)

    def ids(self, key: str) -> list[int]:
        """The ids that a call added, as they were written."""
        text = (self._directory / self._names[key]).read_text(encoding="utf-8")
        return StagedCallSnapshot.model_validate_json(text).token_ids_delta


class Worker:
    """Stages calls.

    Args:
        directory: Where to.

    Attributes:
        seconds: The CPU time that this took.
    """

    def __init__(self, directory: str) -> None:
        self.seconds = 0.0
        self._sink = Sink(directory)
        self._capture = RolloutTokenCapture(sink=self._sink, weight_version_fn=lambda: 1)
        self._lock = threading.Lock()

    def staged(self, request: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Stage a call. Gives what the response says of it."""
        ids = {
            "prompt_token_ids": reply.prompt(),
            "generated_token_ids": reply.generation(),
            "generated_logprobs": reply.log_probs(),
        }
        with self._lock:
            begun = time.thread_time()
            admission = CaptureAdmission.model_validate(request["ng_capture"])
            prefix = [id_ for key in admission.staging_chain for id_ in self._sink.ids(key)]
            call = self._capture.begin_call(admission, prefix_token_ids=prefix or None)
            coords = self._capture.complete_call(call, **ids)
            self.seconds += time.thread_time() - begun
        return {"ng_commit_coords": coords.model_dump(mode="json")}
