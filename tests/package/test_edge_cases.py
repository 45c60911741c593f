"""Edge cases of the records API, tried on the module that this one replaces.

Stances: match and opt-in have that module's value, match-type its exception class; for fix and extend, where it is
wrong or unhelpful, EXPECTED says what is right: the text of a value, or an exception class and a pattern.
"""

import array
import asyncio
import decimal
import json
import math
import pickle

import numpy as np
import orjson
import pytest
from pydantic import ValidationError
from pydantic_core import PydanticSerializationError
from support.factories import DELTA, IDS, make_entry
from support.places import DATA
from tokenrecords import records

CASES = json.loads((DATA / "edge_cases.json").read_text())

IDS_TEXT = (
    "{'prompt_token_ids': [1, 2], 'generation_token_ids': [3], 'generation_log_probs': [-0.5], 'routed_experts': None}"
)
FLOAT_ID = (TypeError, r"^token_ids\[0\] is {}: token ids must be integers, got {}$")


def floats(shown, kind):
    return FLOAT_ID[0], FLOAT_ID[1].format(shown, kind)


EXPECTED = {
    "TokenEntry: routed_experts raw bytes": (PydanticSerializationError, "routed_experts is bytes"),
    "TokenEntry: numpy float array of whole numbers": (ValidationError, "integers, got an array of dtype float64"),
    "TokenEntry JSON: NaN logprob round trip": "E(generation_log_probs=[nan])",
    "TokenEntry JSON: -inf logprob round trip": "E(generation_log_probs=[-inf])",
    "TokenEntry JSON: nested 205: can be written, cannot be read": (ValidationError, "recursion limit"),
    "compute_digest: numpy array, several ids": "'81b40eab52cfd639679f3771e4bbfc141751ebe5554c567e7389f1d794a89a2b'",
    "compute_digest: 2**64": (ValueError, r"^token_ids\[0\] is 18446744073709551616: .*below 2\*\*64"),
    "compute_digest: None": (TypeError, "^token_ids is None"),
    "compute_digest: numpy array [0]": "False",
    "compute_digest: empty string": (TypeError, "^token_ids is of type str"),
    "encode_token_ids: numpy array, empty": "'010000000000000000'",
    "encode_token_ids: dict": (TypeError, "^token_ids is of type dict"),
    "encode_token_ids: used in asyncio.to_thread with a float id": floats("1.0", "float"),
    "encode_token_ids: used in map() with a bad list in the middle": floats("2.0", "float"),
    "encode_token_ids: 2**64": (ValueError, r"^token_ids\[0\] is 18446744073709551616: .*below 2\*\*64"),
    "encode_token_ids: numpy float32 scalar": floats(".*1.0.*", "float32"),
    "encode_token_ids: used in a generator": floats("2.0", "float"),
    "encode_token_ids: Decimal": floats(r"Decimal\('3'\)", "Decimal"),
    "encode_token_ids: numpy array with the single id 0": "'0100000000000000010000000000000000'",
    "encode_token_ids: float that is whole": floats("1.0", "float"),
    "encode_token_ids: set": (TypeError, "^token_ids is of type set: .*unordered"),
    "encode_token_ids: bytes": (TypeError, "^token_ids is of type bytes: bytes are not a token sequence"),
    "capture: Anthropic body plus token-bearing choice": "(True, 0)",
    "capture: output as tuple": "(True, [{'type': 'message', **B}])",
    "extract_token_fields: LiteLLM moved fields": "None",
    "extract_token_fields: Anthropic payload with token fields on top": IDS_TEXT,
    "extract_token_fields: plain vLLM return_token_ids response": "None",
    "extract_token_fields: Dynamo engine_data": "None",
    "extract_token_fields: ids as token_id: strings": "['token_id:2']",
    "extract_token_fields: choice is text": "None",
    "response_to_output_items: streaming chunk with delta": (ValueError, r"choices\[0\]\.delta .*merge_stream"),
    "response_to_output_items: Anthropic payload with token fields on top": (
        "[{'type': 'message', 'role': 'assistant', 'content': [{'type': 'text', 'text': 'hi'}], **" + IDS_TEXT + "}]"
    ),
    "response_to_output_items: output is a tuple": "[{'type': 'message'}]",
    "response_to_output_items: choice is text": "[]",
    "response_to_output_items: Anthropic content is a string": (
        "[{'type': 'message', 'role': 'assistant', 'content': [{'type': 'text', 'text': 'plain'}]}]"
    ),
    "response_to_output_items: Anthropic content is a dict": (
        "[{'type': 'message', 'role': 'assistant', 'content': [{'type': 'text', 'text': 'a'}]}]"
    ),
    "response_to_output_items: Anthropic block type is a list": (
        "[{'type': 'message', 'role': 'assistant', 'content': [{'type': ['x']}]}]"
    ),
    "stamp_lineage: cumulative equal tuple": "3",
    "stamp_lineage: resolution given as text, with a parent": (ValueError, "cannot carry parent_call_id"),
    "stamp_lineage: delta, cumulative does not end with the own arrays": (ValueError, "disagree"),
    "stamp_lineage: root with parent: state after the error": "('ValueError', None, False, 'None', None)",
    "stamp_lineage: delta, restamped without a parent": (ValueError, "delta prompt"),
    "stamp_lineage: cumulative floats that compare equal": (TypeError, r"^cumulative\[0\] is 1.0"),
    "stamp_lineage: resolution given as text, valid": "'ParentResolutionStatus'",
    "stamp_lineage: resolved with empty parent id": (ValueError, "requires parent_call_id"),
}
FURTHER_TEXTS = {
    "encode_token_ids: negative Python int": r"^token_ids\[0\] is -1: token ids must be non-negative, got -1$",
    "encode_token_ids: 2-d array": "one dimension is needed, got 2",
    "encode_token_ids: nested list": r"^token_ids\[0\]",
    "encode_token_ids: string element": r"^token_ids\[0\]",
    "TokenEntry: schema_version 2": "this reader understands up to",
    "TokenEntry: schema_version 0": "below the supported minimum",
    "TokenEntry: fractional id": r"prompt_token_ids\.0",
    "TokenEntry: more ids than logprobs": "same length",
    "TokenEntry: resolved without parent": "requires parent_call_id",
    "TokenEntry: root with parent": "cannot carry parent_call_id",
    "TokenEntry: delta without parent": "delta prompt",
    "extract_token_fields: only prompt ids": "is missing: generation_token_ids, generation_log_probs",
    "extract_token_fields: fields split over two items": "split over multiple response items",
    "extract_token_fields: two choices with tokens": "multiple response items",
    "strip_token_fields: two carriers": "multiple output items",
    "stamp_lineage: cumulative wrong": "disagree",
}
EXCEPTIONS = {
    kind.__name__: kind for kind in (TypeError, ValueError, AttributeError, ValidationError, PydanticSerializationError)
}


def J(extra="", ids="[1,2]", lps="[-0.5]"):
    return (
        '{"rollout_id":"r","model_call_id":"c","prompt_token_ids":' + ids
        + ',"generation_token_ids":[3],"generation_log_probs":' + lps + extra + "}"
    )  # fmt: skip


def read(extra="", **parts):
    return records.TokenEntry.model_validate_json(J(extra, **parts))


def msg(**fields):
    return {"choices": [{"index": 0, "message": {"role": "assistant", "content": "x", **fields}}]}


def lp_text(entry):
    return entry.model_dump_json().split('"generation_log_probs":')[1].split("]")[0] + "]"


def nest(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def after(function, entry):
    try:
        function(entry)
        raised = "ok"
    except Exception as error:  # noqa: BLE001
        raised = type(error).__name__
    return raised, entry.cum_len, bool(entry.digest), str(entry.parent_resolution), entry.parent_call_id


def evaluate(expression):
    names = {name: getattr(records, name) for name in records.__all__ if name[0] != "_"}
    names |= {
        "E": make_entry, "B": dict(IDS), "D": dict(DELTA), "J": J, "read": read, "msg": msg, "lp_text": lp_text,
        "nest": nest, "after": after, "np": np, "nan": math.nan, "inf": math.inf, "array": array, "asyncio": asyncio,
        "decimal": decimal, "orjson": orjson, "pickle": pickle, "RES": records.ParentResolutionStatus.RESOLVED,
        "ROOT": records.ParentResolutionStatus.ROOT,
    }  # fmt: skip
    return eval(expression, names)


def test_every_case_is_here():
    assert len({case["name"] for case in CASES}) == 173
    assert {case["name"] for case in CASES if case["stance"] in ("fix", "extend")} == set(EXPECTED)
    assert {case["name"] for case in CASES} >= set(FURTHER_TEXTS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_case(case):
    wanted = EXPECTED.get(case["name"])
    if wanted is None and "raises" in case:
        kinds = tuple(EXCEPTIONS[name] for name in case["raises"].split("|"))
        wanted = kinds, FURTHER_TEXTS.get(case["name"])
    if isinstance(wanted, tuple):
        with pytest.raises(wanted[0], match=wanted[1]):
            evaluate(case["expression"])
        return
    value = evaluate(case["expression"])
    if wanted is not None:
        assert value == evaluate(wanted)
        return
    assert repr(value) == case["value"]
    assert type(value).__name__ == case["type"]
