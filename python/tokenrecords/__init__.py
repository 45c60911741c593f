"""Exact tokens of served model calls as proven training records.

`tokenrecords.records` is the drop-in namespace of the module that this package replaces.
"""

import warnings

from tokenrecords._core import DEBUG as _DEBUG
from tokenrecords._core import __version__, compute_digests
from tokenrecords.dialects import detect_dialect
from tokenrecords.jsonl import JsonlReader, RecordError, append_jsonl, read_jsonl, scan_jsonl, write_jsonl
from tokenrecords.lineage import resolve_parent
from tokenrecords.records import (
    DIGEST_VERSION,
    LEDGER_ROW_MISSING_CHAIN_HASH_REASON,
    LEDGER_ROW_MISSING_RESPONSE_ID_REASON,
    TOKEN_ENTRY_MIN_SCHEMA_VERSION,
    TOKEN_ENTRY_RECORD_SCHEMA_VERSION,
    TOKEN_FIELDS,
    UNCOMMITTED_CALL_REASON,
    UNRESOLVED_PARENT_REASON,
    ParentResolutionStatus,
    TokenEntry,
    compute_digest,
    cumulative_tokens,
    encode_token_ids,
    extract_token_fields,
    response_to_output_items,
    stamp_lineage,
    strip_token_fields,
)
from tokenrecords.responses import ServedChoice, entries_from_response, read_response
from tokenrecords.routes import decode_routed_experts, encode_routed_experts
from tokenrecords.streams import merge_stream

if _DEBUG:
    warnings.warn("tokenrecords is a debug build: many times slower, not for use", RuntimeWarning, stacklevel=2)

__all__ = [
    "DIGEST_VERSION",
    "LEDGER_ROW_MISSING_CHAIN_HASH_REASON",
    "LEDGER_ROW_MISSING_RESPONSE_ID_REASON",
    "TOKEN_ENTRY_MIN_SCHEMA_VERSION",
    "TOKEN_ENTRY_RECORD_SCHEMA_VERSION",
    "TOKEN_FIELDS",
    "UNCOMMITTED_CALL_REASON",
    "UNRESOLVED_PARENT_REASON",
    "JsonlReader",
    "ParentResolutionStatus",
    "RecordError",
    "ServedChoice",
    "TokenEntry",
    "__version__",
    "append_jsonl",
    "compute_digest",
    "compute_digests",
    "cumulative_tokens",
    "decode_routed_experts",
    "detect_dialect",
    "encode_routed_experts",
    "encode_token_ids",
    "entries_from_response",
    "extract_token_fields",
    "merge_stream",
    "read_jsonl",
    "read_response",
    "resolve_parent",
    "response_to_output_items",
    "scan_jsonl",
    "stamp_lineage",
    "strip_token_fields",
    "write_jsonl",
]
