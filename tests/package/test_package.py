"""The package as installed: its names, its version, and what it imports."""

import enum
import hashlib
import importlib.metadata
import importlib.resources
import subprocess
import sys

import pytest
import tokenrecords
from tokenrecords import ParentResolutionStatus, records
from tokenrecords.tokens import names

REFERENCE_NAMES = {
    "DIGEST_VERSION",
    "LEDGER_ROW_MISSING_CHAIN_HASH_REASON",
    "LEDGER_ROW_MISSING_RESPONSE_ID_REASON",
    "ParentResolutionStatus",
    "TOKEN_ENTRY_MIN_SCHEMA_VERSION",
    "TOKEN_ENTRY_RECORD_SCHEMA_VERSION",
    "TOKEN_FIELDS",
    "TokenEntry",
    "UNCOMMITTED_CALL_REASON",
    "UNRESOLVED_PARENT_REASON",
    "_DIGEST_DOMAIN",
    "_EMPTY_DIGEST",
    "compute_digest",
    "cumulative_tokens",
    "encode_token_ids",
    "extract_token_fields",
    "response_to_output_items",
    "stamp_lineage",
    "strip_token_fields",
}


def test_records_has_the_names_of_the_replaced_module():
    assert set(records.__all__) == REFERENCE_NAMES
    assert len(records.__all__) == len(REFERENCE_NAMES)
    own = {name for name in vars(records) if not name.startswith("__")}
    assert own == REFERENCE_NAMES


def test_the_package_has_them_too():
    public = {name for name in REFERENCE_NAMES if not name.startswith("_")}
    assert public <= set(tokenrecords.__all__)
    assert "resolve_parent" in tokenrecords.__all__
    assert all(getattr(tokenrecords, name) is getattr(records, name) for name in public)
    assert all(hasattr(tokenrecords, name) for name in tokenrecords.__all__)
    assert len(set(tokenrecords.__all__)) == len(tokenrecords.__all__)


def test_constants():
    assert records.DIGEST_VERSION == 1
    assert records.TOKEN_ENTRY_MIN_SCHEMA_VERSION == 1
    assert records.TOKEN_ENTRY_RECORD_SCHEMA_VERSION == 1
    assert records._DIGEST_DOMAIN == b"nemo-gym-tokens"
    assert type(records._DIGEST_DOMAIN) is bytes
    assert hashlib.sha256(b"nemo-gym-tokens").hexdigest() == records._EMPTY_DIGEST
    assert records.UNRESOLVED_PARENT_REASON == "unresolved_parent"
    assert records.UNCOMMITTED_CALL_REASON == "request_finished_without_staged_coordinates"
    assert records.LEDGER_ROW_MISSING_RESPONSE_ID_REASON == "ledger_row_missing_response_id"
    assert records.LEDGER_ROW_MISSING_CHAIN_HASH_REASON == "ledger_row_missing_chain_hash"
    for name in ("DIGEST_VERSION", "TOKEN_ENTRY_MIN_SCHEMA_VERSION", "TOKEN_ENTRY_RECORD_SCHEMA_VERSION"):
        assert type(getattr(records, name)) is int


def test_token_fields():
    wanted = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")
    assert wanted == records.TOKEN_FIELDS
    assert records.TOKEN_FIELDS is names.TOKEN_FIELDS


def test_the_status_is_text():
    assert issubclass(ParentResolutionStatus, enum.StrEnum)
    assert {status.name: status.value for status in ParentResolutionStatus} == {
        "ROOT": "root",
        "RESOLVED": "resolved",
        "UNRESOLVED": "unresolved",
    }
    assert [status.name for status in ParentResolutionStatus] == ["ROOT", "RESOLVED", "UNRESOLVED"]
    for status in ParentResolutionStatus:
        assert status == status.value
        assert str(status) == f"{status}" == status.value
        assert isinstance(status, str)
        assert ParentResolutionStatus(status.value) is status


@pytest.mark.parametrize("function", [tokenrecords.encode_token_ids, tokenrecords.compute_digest])
def test_native_functions_say_where_they_are(function):
    assert function.__module__ == "tokenrecords._core"
    assert function.__name__ in REFERENCE_NAMES


def test_version():
    assert tokenrecords.__version__ == importlib.metadata.version("tokenrecords")


def test_the_package_is_typed():
    files = importlib.resources.files(tokenrecords)
    assert files.joinpath("py.typed").is_file()
    assert files.joinpath("_core.pyi").is_file()


HEAVY = (
    "typer",
    "click",
    "rich",
    "pyarrow",
    "pandas",
    "torch",
    "hypothesis",
    "pytest",
    "orjson",
    "nemo_gym",
    "asyncio",
)


@pytest.mark.parametrize("module", ["tokenrecords", "tokenrecords.records"])
def test_import_is_light(module):
    code = f"import {module}, sys; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in out.stdout.split()}
    code = "import numpy, pydantic, sys; print(*sys.modules)"
    base = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert loaded.isdisjoint(set(HEAVY) - {name.partition(".")[0] for name in base.stdout.split()})
    assert out.stderr == ""


def test_the_extension_does_without_the_gil():
    code = "import sys, tokenrecords._core; print(getattr(sys, '_is_gil_enabled', lambda: None)())"
    before = "import sys; print(getattr(sys, '_is_gil_enabled', lambda: None)())"
    results = [
        subprocess.run([sys.executable, "-c", each], check=True, capture_output=True, text=True).stdout
        for each in (before, code)
    ]
    assert results[0] == results[1]
