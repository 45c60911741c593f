"""Runs the published wheel's store and builder, and prints what they do as JSON: a program for package/test_gym.py.

python gym_run.py own|ours|early|late lists|arrays DIRECTORY < ENTRIES.jsonl
"""

import dataclasses
import json
import pathlib
import sys

records_of, held_as, directory = sys.argv[1:]
if records_of == "ours":
    import tokenrecords.records

    sys.modules["nemo_gym.token_id_capture.records"] = tokenrecords.records

if records_of == "early":
    import tokenrecords.gym

    assert tokenrecords.gym.install().release == "0.7.0"

from nemo_gym.token_id_capture import builder, records, store  # noqa: E402

if records_of == "late":
    import tokenrecords.gym

    assert "nemo_gym.token_id_capture.builder.TokenEntry" in tokenrecords.gym.install().rebound

if records_of == "ours":
    assert records is tokenrecords.records
if records_of != "own":
    assert builder.TokenEntry is store.TokenEntry is tokenrecords.TokenEntry
else:
    assert "tokenrecords" not in sys.modules


def plain(value):
    """A result as JSON has it."""
    if isinstance(value, records.TokenEntry):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value


def attempt(function, *arguments):
    try:
        return plain(function(*arguments))
    except Exception as error:  # noqa: BLE001
        return type(error).__name__


entries = [records.TokenEntry.model_validate_json(line) for line in sys.stdin]
if held_as == "arrays":
    entries = [entry.as_arrays() for entry in entries]
rollouts = {}
for entry in entries:
    rollouts.setdefault(entry.rollout_id, []).append(entry)

results = {}
captured = store.TokenCaptureStore(directory)
for name, calls in rollouts.items():
    changed = calls[0].model_copy(update={"prompt_token_ids": [9, 9]})
    appended = [attempt(captured.append, entry) for entry in (*calls, calls[0], changed)]
    read = attempt(captured.read_entries, name)
    frozen = attempt(captured.freeze_now, name)
    frozen.pop("snapshot_id")  # drawn anew each time
    lists = [entry.as_lists() for entry in calls] if held_as == "arrays" else calls
    built = attempt(builder.run_builder, lists)
    response = attempt(
        lambda lists=lists, name=name: builder.project_main_chain_response(name, builder.run_builder(lists))
    )
    results[name] = {"appended": appended, "read": read, "frozen": frozen, "built": built, "response": response}
files = {path.name: path.read_text() for path in pathlib.Path(directory).glob("*.jsonl")}
sys.stdout.write(json.dumps({"results": results, "files": files}))
