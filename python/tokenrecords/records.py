"""The drop-in namespace: exactly the names of `nemo_gym.token_id_capture.records`.

`sys.modules["nemo_gym.token_id_capture.records"] = tokenrecords.records` before that package is imported makes its
other modules run on this one.
"""

from tokenrecords._core import DIGEST_DOMAIN as _DIGEST_DOMAIN
from tokenrecords._core import DIGEST_VERSION, compute_digest, encode_token_ids
from tokenrecords.engines.token_fields import (
    extract_token_fields,
    response_to_output_items,
    strip_token_fields,
)
from tokenrecords.entry.model import (
    TOKEN_ENTRY_MIN_SCHEMA_VERSION,
    TOKEN_ENTRY_RECORD_SCHEMA_VERSION,
    TokenEntry,
)
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.lineage.stamp import cumulative_tokens, stamp_lineage
from tokenrecords.tokens.names import TOKEN_FIELDS

_EMPTY_DIGEST = compute_digest(())

# Reasons that a capturing service and its consumers exchange (nemo-gym 0.7.0).
UNRESOLVED_PARENT_REASON = "unresolved_parent"
UNCOMMITTED_CALL_REASON = "request_finished_without_staged_coordinates"
LEDGER_ROW_MISSING_RESPONSE_ID_REASON = "ledger_row_missing_response_id"
LEDGER_ROW_MISSING_CHAIN_HASH_REASON = "ledger_row_missing_chain_hash"

__all__ = [
    "DIGEST_VERSION",
    "LEDGER_ROW_MISSING_CHAIN_HASH_REASON",
    "LEDGER_ROW_MISSING_RESPONSE_ID_REASON",
    "TOKEN_ENTRY_MIN_SCHEMA_VERSION",
    "TOKEN_ENTRY_RECORD_SCHEMA_VERSION",
    "TOKEN_FIELDS",
    "UNCOMMITTED_CALL_REASON",
    "UNRESOLVED_PARENT_REASON",
    "_DIGEST_DOMAIN",
    "_EMPTY_DIGEST",
    "ParentResolutionStatus",
    "TokenEntry",
    "compute_digest",
    "cumulative_tokens",
    "encode_token_ids",
    "extract_token_fields",
    "response_to_output_items",
    "stamp_lineage",
    "strip_token_fields",
]
