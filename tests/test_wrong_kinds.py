"""One entry, a path or something else where several entries or chains are wanted."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from makers import Array, make_entry
from tokenrecords import (
    append_jsonl,
    build_chains,
    entries_from_response,
    expand_deltas,
    group_by_rollout,
    pack_chains,
    read_response,
    verify,
    write_jsonl,
)


@pytest.mark.parametrize("function", [verify, group_by_rollout, expand_deltas, build_chains])
@pytest.mark.parametrize("wrong", [make_entry(), "r.tokens.jsonl", pathlib.Path("r"), {"r": [make_entry()]}, b"{}"])
def test_what_is_no_collection_of_entries(function: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match=rf"^entries is {type(wrong).__name__}: several entries are needed"):
        function(wrong)


def test_one_entry_to_write(tmp_path: pathlib.Path) -> None:
    for write in (write_jsonl, append_jsonl):
        with pytest.raises(TypeError, match=r"^entries is TokenEntry: several entries are needed; put it in a list"):
            write(tmp_path / "x.tokens.jsonl", make_entry())
    assert not list(tmp_path.iterdir())


def test_what_is_no_chain() -> None:
    build = build_chains([make_entry(parent_resolution="root")])
    for wrong in (build, None):
        with pytest.raises(TypeError, match=rf"^chains\[1\] is {type(wrong).__name__}: a Chain is needed"):
            pack_chains([build.main, wrong])
    with pytest.raises(TypeError, match=r"^pad_id is None"):
        pack_chains([build.main]).padded(None)


def payload(**message: Any) -> dict[str, Any]:
    tokens = {"prompt_token_ids": [1], "generation_token_ids": [2], "generation_log_probs": [-0.5], **message}
    return {"choices": [{"index": 0, "message": {"content": "x", **tokens}}]}


def test_a_parent_that_is_no_entry() -> None:
    with pytest.raises(TypeError, match=r"^parent is str: a TokenEntry"):
        entries_from_response(payload(), rollout_id="r", model_call_id="c", parent="c0")
    with pytest.raises(TypeError, match=r"^parent_call_id can't be given: .* parent="):
        entries_from_response(payload(), rollout_id="r", model_call_id="c", parent_call_id="c0")


def test_tensors_in_a_response_are_arrays() -> None:
    ids, log_probs = np.array([1, 7], np.int32), np.array([-0.5], np.float32)
    [choice] = read_response(payload(prompt_token_ids=Array(ids), generation_log_probs=Array(log_probs)))
    assert choice.prompt_token_ids is ids
    assert choice.generation_log_probs is log_probs


def test_chunks_are_named() -> None:
    chunks = [{"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"content": "x"}}]}] * 2
    with pytest.raises(ValueError, match="merge_stream joins the chunks"):
        read_response(chunks)
