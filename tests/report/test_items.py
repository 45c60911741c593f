"""The text of output items."""

from __future__ import annotations

from tokenrecords.report.items import text_of


def test_an_item_is_a_paragraph_of_what_it_says() -> None:
    items = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "first"}], "status": "done"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a\nb\u202e\x1b[1m"}]},
        {"type": "function_call", "name": "calc", "arguments": '{"x": 1}', "call_id": "c"},
        {"content": "plain"},
    ]
    assert text_of(items) == (
        '[reasoning]\nfirst\n\n[message]\na\nb\\u202e\\x1b[1m\n\n[function_call]\ncalc\n{"x": 1}\n\n[item]\nplain'
    )


def test_long_text_is_cut_and_says_so() -> None:
    shown = text_of([{"type": "t", "text": "x" * 30_000}])
    assert shown == "[t]\n" + "x" * 19_996 + "\n... 10,004 more characters"
    assert text_of([{"type": "t", "text": "x" * 19_996}]) == "[t]\n" + "x" * 19_996


def test_what_is_no_item_is_one_of_nothing() -> None:
    assert text_of(["text", 5, None]) == "[item]\n\n[item]\n\n[item]".replace("[item]", "[item]\ntext", 1)  # type: ignore[list-item]
    assert text_of([]) == ""


def test_a_refusal_is_said() -> None:
    assert text_of([{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}]) == "[message]\nno"


def test_what_was_thought_and_what_a_tool_gave_are_said() -> None:
    items = [{"type": "message", "reasoning_content": "why", "content": "so"}, {"type": "result", "output": "5"}]
    assert text_of(items) == "[message]\nwhy\nso\n\n[result]\n5"
