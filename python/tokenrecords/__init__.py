"""Exact tokens of served model calls as proven training records.

`tokenrecords.records` is the drop-in namespace of the module that this package replaces.
"""

import warnings

from tokenrecords._core import DEBUG as _DEBUG
from tokenrecords._core import __version__, compute_digests
from tokenrecords.capture.entries import entries_from_response
from tokenrecords.capture.finished import entries_from_rollout
from tokenrecords.capture.transcript import entries_from_transcript
from tokenrecords.engines.dialects import detect_dialect
from tokenrecords.engines.response import ServedChoice, read_response
from tokenrecords.engines.stream import merge_stream
from tokenrecords.entry.entries import group_by_rollout
from tokenrecords.files.jsonl import JsonlReader, RecordError, append_jsonl, read_jsonl, scan_jsonl, write_jsonl
from tokenrecords.lineage.deltas import Expansion, expand_deltas
from tokenrecords.lineage.parents import link_entries, resolve_parent
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
from tokenrecords.tokens.routed_experts import decode_routed_experts, encode_routed_experts
from tokenrecords.training.chain import Chain, Split
from tokenrecords.training.chains import BuildNotes, ChainBuild, build_chains
from tokenrecords.training.packed import PackedBatch
from tokenrecords.training.packing import pack_chains
from tokenrecords.training.rollouts import build_rollouts
from tokenrecords.training.views import NextTokenBatch, PaddedBatch, PromptResponseBatch
from tokenrecords.verification.findings import Finding, Report, VerificationError
from tokenrecords.verification.verify import verify

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
    "BuildNotes",
    "Chain",
    "ChainBuild",
    "Expansion",
    "Finding",
    "JsonlReader",
    "NextTokenBatch",
    "PackedBatch",
    "PaddedBatch",
    "ParentResolutionStatus",
    "PromptResponseBatch",
    "RecordError",
    "Report",
    "ServedChoice",
    "Split",
    "TokenEntry",
    "VerificationError",
    "__version__",
    "append_jsonl",
    "build_chains",
    "build_rollouts",
    "compute_digest",
    "compute_digests",
    "cumulative_tokens",
    "decode_routed_experts",
    "detect_dialect",
    "encode_routed_experts",
    "encode_token_ids",
    "entries_from_response",
    "entries_from_rollout",
    "entries_from_transcript",
    "expand_deltas",
    "extract_token_fields",
    "group_by_rollout",
    "link_entries",
    "merge_stream",
    "pack_chains",
    "read_jsonl",
    "read_response",
    "resolve_parent",
    "response_to_output_items",
    "scan_jsonl",
    "stamp_lineage",
    "strip_token_fields",
    "verify",
    "write_jsonl",
]
