"""A lone surrogate, half of a character that was cut, costs no tokens: it is written as U+FFFD, and said."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from support.factories import make_entry
from tokenrecords import TokenEntry, append_jsonl, read_jsonl, write_jsonl

if TYPE_CHECKING:
    from pathlib import Path

HALF, OTHER_HALF, SHOWN = "\ud83d", "\ude00", "\ufffd"
TEXTS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "an item": (
        {"output_items": [{"type": "message", "content": f"cut {HALF}"}]},
        {"output_items": [{"type": "message", "content": f"cut {SHOWN}"}]},
        "output_items",
    ),
    "deep in an item": (
        {"output_items": [{"a": [1, {"b": ["x", f"{HALF}y{HALF}"]}]}]},
        {"output_items": [{"a": [1, {"b": ["x", f"{SHOWN}y{SHOWN}"]}]}]},
        "output_items",
    ),
    "model": ({"model": f"m{OTHER_HALF}"}, {"model": f"m{SHOWN}"}, "model"),
    "a reason": (
        {"parent_resolution": "unresolved", "parent_resolution_reason": HALF},
        {"parent_resolution": "unresolved", "parent_resolution_reason": SHOWN},
        "parent_resolution_reason",
    ),
    "an extra field": ({"note": {"a": HALF}}, {"note": {"a": SHOWN}}, "note"),
    "routes": ({"routed_experts": HALF}, {"routed_experts": SHOWN}, "routed_experts"),
    "both halves apart": ({"model": f"{OTHER_HALF}{HALF}"}, {"model": SHOWN * 2}, "model"),
    "both halves": ({"model": f"{HALF}{OTHER_HALF}"}, {"model": "😀"}, "model"),
    "two fields": ({"model": HALF, "note": HALF}, {"model": SHOWN, "note": SHOWN}, "model, note"),
}


@pytest.mark.parametrize(("given", "written", "names"), TEXTS.values(), ids=TEXTS)
def test_the_tokens_are_written_and_the_text_is_mended(
    given: dict[str, Any], written: dict[str, Any], names: str, tmp_path: Path
) -> None:
    entry, expected = make_entry(**given), make_entry(**written)
    before = entry.model_copy(deep=True)
    message = f"^model call 'c' of rollout 'r': lone surrogates in {names} were written as U\\+FFFD$"
    with pytest.warns(UserWarning, match=message):
        line = entry.to_json()
    assert TokenEntry.from_json(line, arrays=False) == expected
    path = tmp_path / "r.tokens.jsonl"
    with pytest.warns(UserWarning, match=message):
        append_jsonl(path, [entry, make_entry(model_call_id="d")])
    assert read_jsonl(path, arrays=False) == [expected, make_entry(model_call_id="d")]
    file = io.BytesIO()
    with pytest.warns(UserWarning, match=message):
        write_jsonl(file, [entry])
    assert file.getvalue() == line + b"\n"
    assert entry == before


@pytest.mark.parametrize("name", ["rollout_id", "model_call_id", "parent_call_id", "response_id", "digest"])
def test_what_names_a_call_is_not_mended(name: str) -> None:
    entry = make_entry(model=HALF, parent_call_id="p", parent_resolution="resolved")
    setattr(entry, name, HALF)
    with pytest.raises(ValueError, match=rf"can't be written: {name}: .*surrogates not allowed"):
        entry.to_json()


@pytest.mark.parametrize("fields", [{"output_items": [{HALF: 1}]}, {"note": {"a": {HALF: 1}}}])
def test_keys_are_not_mended(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        make_entry(**fields).to_json()


def test_what_else_is_wrong_is_said() -> None:
    with pytest.raises(ValueError, match=r"can't be written: note: .*does not fit 64 bits"):
        make_entry(model=HALF, note=2**64).to_json()


def test_text_without_surrogates_is_as_it_was() -> None:
    entry = make_entry(model="😀 \ufffd", note=[SHOWN, "é"])
    assert TokenEntry.from_json(entry.to_json(), arrays=False) == entry  # and no warning, which would be an error here


@pytest.mark.parametrize("mask", [None, [1], [True]])
def test_a_loss_mask_is_read_back(mask: Any) -> None:
    entry = make_entry(generation_loss_mask=mask)
    assert TokenEntry.from_json(entry.to_json(), arrays=False) == entry


def test_the_warning_names_the_line_that_wrote() -> None:
    with pytest.warns(UserWarning, match="lone surrogates") as found:
        make_entry(model=HALF).to_json()
    assert found[0].filename == __file__


@pytest.mark.parametrize("mask", [(1, 0), [np.int64(1), np.int8(0)], [np.True_, np.False_], np.array([1, 0], np.uint8)])
def test_a_mask_of_numpy_values_is_written(mask: Any) -> None:
    entry = make_entry(generation_token_ids=[3, 4], generation_log_probs=[-0.5, -0.5], generation_loss_mask=mask)
    assert TokenEntry.from_json(entry.to_json()).generation_loss_mask in ([1, 0], [True, False])


def test_a_mask_without_an_order_is_refused() -> None:
    with pytest.raises(ValueError, match=r"generation_loss_mask is .* a mask must hold 0 and 1"):
        make_entry(generation_loss_mask={1, 0}).to_json()
