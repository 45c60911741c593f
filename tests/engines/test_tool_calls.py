"""Tool calls of a stream, told apart by id, index or place."""

import pytest
from support.payloads import chunk
from tokenrecords import merge_stream


def call(name=None, arguments=None, **fields):
    return {"function": {"name": name, "arguments": arguments}, **fields}


def calls(*chunks):
    parts = [chunk({"index": 0, "delta": {"tool_calls": list(pieces)}}) for pieces in chunks]
    [choice] = merge_stream(parts)["choices"]
    found = choice["message"]["tool_calls"]
    return [(part.get("id"), part["function"].get("name"), part["function"].get("arguments")) for part in found]


STREAMS = {
    "by index": [[call("f", "{", index=0, id="a")], [call("g", "[", index=1, id="b")], [call(None, "}", index=0)]],
    "one index for all": [
        [call("f", "{", index=0, id="a")],
        [call(None, "}", index=0)],
        [call("g", "[", index=0, id="b")],
    ],
    "no index": [[call("f", "{", id="a")], [call(None, "}")], [call("g", "[", id="b")]],
    "no index, ids again": [[call("f", "{", id="a")], [call("g", "[", id="b")], [call(None, "}", id="a")]],
    "several a chunk": [[call("f", "{", id="a"), call("g", "[", id="b")], [call(None, "}"), call(None, "")]],
    "an id of its own a chunk": [
        [call("f", "{", index=0, id="a")],
        [call(None, "}", index=0, id="zz")],
        [call("g", "[", index=1, id="b")],
    ],
    "the id later": [
        [call("f", "{", index=0)],
        [call("f", "}", index=0, id="a")],
        [call("g", "[", index=1, id="b")],
    ],
    "null, and the id later": [
        [call("f", "{", index=0, id=None, type=None)],
        [call("f", "}", index=0, id="a")],
        [call("g", "[", index=1, id="b")],
    ],
    "the name again": [
        [call("f", "{", index=0, id="a")],
        [call("f", "}", index=0)],
        [call("g", "[", index=1, id="b")],
    ],
}


@pytest.mark.parametrize("name", STREAMS)
def test_pieces_find_their_call(name):
    assert calls(*STREAMS[name]) == [("a", "f", "{}"), ("b", "g", "[")]


def test_names_alone():
    assert calls([call("f", "{}")], [call("g", "[]")]) == [(None, "f", "{}"), (None, "g", "[]")]
    assert calls([call("f", "{}"), call("g", "[]")], [call("h", "1"), call("i", "2")]) == [
        (None, "f", "{}"),
        (None, "g", "[]"),
        (None, "h", "1"),
        (None, "i", "2"),
    ]


def test_calls_come_in_order_of_index():
    assert [found[0] for found in calls([call("g", "", index=1, id="b")], [call("f", "", index=0, id="a")])] == [
        "a",
        "b",
    ]


def test_text_that_looks_like_an_envelope_is_text():
    assert calls([call("f", "ngtok1:", index=0, id="a")], [call(None, "x", index=0)]) == [("a", "f", "ngtok1:x")]


@pytest.mark.parametrize("index", ["0", True, 0.5])
def test_an_index_of_another_type(index):
    with pytest.raises(ValueError, match="chunk 0: the index of a tool call must be an integer"):
        calls([call("f", "", index=index)])


def test_another_name_after_the_arguments_begins_another_call():
    assert calls([call("f", "{}", index=0)], [call("g", "[]", index=0)]) == [(None, "f", "{}"), (None, "g", "[]")]
    assert calls([call("get_", None, index=0, id="a")], [call("time", "{}", index=0)]) == [("a", "get_time", "{}")]
    assert calls([call("get_", "", index=0, id="a")], [call("time", "{}", index=0)]) == [("a", "get_time", "{}")]


def test_a_name_that_goes_on_or_comes_again():
    def pieces(*names):
        return [[call(name, None, index=0)] for name in names]

    for names, want in (
        (("f", "f"), "f"),
        (("f", "fg"), "ffg"),
        (("fg", "f"), "fgf"),
        (("f", "g", "fg"), "fg"),
        (("f", ""), "f"),
    ):
        assert calls(*pieces(*names)) == [(None, want, None)]
    assert calls(*pieces("f", "g"), [call("fg", "{")], [call("fg", "}")], [call("f", "[")]) == [
        (None, "fg", "{}"),
        (None, "f", "["),
    ]


def test_arguments_may_repeat_themselves():
    assert calls(*[[call("f" if k == 0 else None, "1", index=0)] for k in range(3)]) == [(None, "f", "111")]
    assert calls([call("f", "1", index=0)], [call("f", "1", index=0)]) == [(None, "f", "11")]
