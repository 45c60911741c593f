"""Seven served responses of real models (from NeMo Gym's example data, Apache-2.0), and their capture."""

import json

from tokenrecords import TokenEntry, extract_token_fields, response_to_output_items, strip_token_fields

from support.places import DATA

CALLS = [json.loads(line) for line in (DATA / "served_responses.jsonl").read_text(encoding="utf-8").splitlines()]


def capture(call, **changes):
    """The entry of a served call, as a capturing service makes it."""
    fields = extract_token_fields(call["response"])
    items, index = strip_token_fields(response_to_output_items(call["response"]))
    return TokenEntry(
        rollout_id=call["rollout_id"],
        model_call_id=call["model_call_id"],
        response_id=call["response"]["id"],
        model=call["response"]["model"],
        output_items=items,
        token_item_index=index,
        **{**fields, **changes},
    )
