"""The modules of NeMo Gym whose names are replaced: what they are known to be, and what takes their place."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tokenrecords.entry.model import TokenEntry
from tokenrecords.entry.resolution import ParentResolutionStatus
from tokenrecords.gym import reading, staging
from tokenrecords.gym.building import prefix_merging
from tokenrecords.gym.lineage import file_lineage_store
from tokenrecords.gym.routes import encode_routed_experts
from tokenrecords.gym.sealed import validate_seal
from tokenrecords.gym.surface import Surface

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

from tokenrecords._core import compute_digest, encode_token_ids
from tokenrecords.engines.token_fields import extract_token_fields, response_to_output_items, strip_token_fields
from tokenrecords.lineage.stamp import cumulative_tokens, stamp_lineage

PACKAGE = "nemo_gym"


class UnknownReleaseError(ImportError):
    """The installed NeMo Gym is not one whose names may be replaced; the message says what differs."""


@dataclass(frozen=True)
class Made:
    """What takes the place of an object, and is made of it.

    Attributes:
        of: Makes it.
    """

    of: Callable[[Any], Any]


@dataclass(frozen=True)
class Target:
    """A module whose names are replaced.

    Attributes:
        module: Its full name.
        releases: The releases of which it is known, by the SHA-256 of its file.
        replaced: What takes the place of its names, of methods of its classes and of values of its tables.
        known: Its declarations, in Python's words; empty where only a known file is good enough, because what is
            replaced stands behind its interface.
        optional: Names that not every known release has.
        asked: Those of the replaced names that are replaced only where that is asked for.
    """

    module: str
    releases: Mapping[str, str]
    replaced: Mapping[str, Any]
    known: str = ""
    optional: frozenset[str] = frozenset()
    asked: frozenset[str] = frozenset()

    @property
    def needed(self) -> bool:
        """Whether nothing is replaced where this module is of an unknown release."""
        return bool(self.known)

    def path(self, package: Path) -> Path:
        """Its file in the package's directory."""
        return package.joinpath(*self.module.split(".")[1:]).with_suffix(".py")

    def release(self, path: Path) -> str | None:
        """The release that a file is of, by its hash; None where the file is another with the same declarations.

        Raises:
            UnknownReleaseError: Its declarations differ, or it can't be read.
        """
        try:
            content = path.read_bytes()
            release = self.releases.get(hashlib.sha256(content).hexdigest())
            if release is not None:
                return release
            if not self.known:
                raise UnknownReleaseError(f"{path} is of an unknown release", name=self.module, path=str(path))
            found = Surface.of(content.decode())
        except (OSError, UnicodeDecodeError, SyntaxError) as error:
            raise UnknownReleaseError(f"{path} can't be read: {error}", name=self.module, path=str(path)) from error
        differences = found.differences(Surface.of(self.known), self.optional)
        if differences:
            message = f"{path} is of an unknown release: {'; '.join(differences)}"
            raise UnknownReleaseError(message, name=self.module, path=str(path))
        return None


RECORDS = Target(
    module="nemo_gym.token_id_capture.records",
    releases={
        "5155c79c1a9c850b12c4cbe456d9aa6420399a15b04324f5cc307947c960f00b": "0.6.0",
        "ad4f056bb6dd8ccb927ee8b7ac8cb24c3955d318e3ee02f899e28daf4ec170e0": "0.7.0",
    },
    known="""
TOKEN_FIELDS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs", "routed_experts")
TOKEN_ENTRY_RECORD_SCHEMA_VERSION = 1
TOKEN_ENTRY_MIN_SCHEMA_VERSION = 1
DIGEST_VERSION = 1
_DIGEST_DOMAIN = b"nemo-gym-tokens"
_EMPTY_DIGEST = computed
UNRESOLVED_PARENT_REASON = "unresolved_parent"
UNCOMMITTED_CALL_REASON = "request_finished_without_staged_coordinates"
LEDGER_ROW_MISSING_RESPONSE_ID_REASON = "ledger_row_missing_response_id"
LEDGER_ROW_MISSING_CHAIN_HASH_REASON = "ledger_row_missing_chain_hash"

class ParentResolutionStatus(StrEnum):
    ROOT = "root"
    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"

class TokenEntry(BaseModel):
    model_config = ConfigDict(extra="allow")
    schema_version: int = TOKEN_ENTRY_RECORD_SCHEMA_VERSION
    rollout_id: str
    model_call_id: str
    model: str = ""
    prompt_token_ids: list[int]
    generation_token_ids: list[int]
    generation_log_probs: list[float]
    routed_experts: Any | None = None
    output_items: list[dict] = Field(default_factory=list)
    token_item_index: int | None = None
    response_id: str | None = None
    created_at: float = 0.0
    parent_call_id: str | None = None
    cum_len: int | None = None
    digest: str | None = None
    parent_resolution: ParentResolutionStatus | None = None
    continuation_fingerprint: str = ""
    continuation_context_len: int = 0
    continuation_context_digest: str = ""
    parent_resolution_reason: str = ""
    fingerprint_version: int | None = None
    prompt_is_delta: bool = False
    prefix_requested: bool = False
    prefix_supplied: bool = False
    @model_validator(mode="after")
    def _refuse_a_newer_record(self) -> "TokenEntry": ...

def encode_token_ids(token_ids: list[int]) -> bytes: ...
def compute_digest(token_ids: list[int]) -> str: ...
def cumulative_tokens(entry: TokenEntry) -> list[int]: ...
def stamp_lineage(
    entry: TokenEntry,
    parent_call_id: str | None,
    *,
    parent_resolution: ParentResolutionStatus | None = None,
    cumulative: list[int] | None = None,
) -> TokenEntry: ...
def response_to_output_items(payload: dict) -> list[dict]: ...
def strip_token_fields(items: list[dict]) -> tuple[list[dict], int | None]: ...
def extract_token_fields(response_json: dict) -> dict | None: ...
""",
    optional=frozenset(
        (
            "LEDGER_ROW_MISSING_CHAIN_HASH_REASON",
            "LEDGER_ROW_MISSING_RESPONSE_ID_REASON",
            "UNCOMMITTED_CALL_REASON",
            "UNRESOLVED_PARENT_REASON",
        )
    ),
    replaced={
        "ParentResolutionStatus": ParentResolutionStatus,
        "TokenEntry": TokenEntry,
        "compute_digest": compute_digest,
        "cumulative_tokens": cumulative_tokens,
        "encode_token_ids": encode_token_ids,
        "extract_token_fields": extract_token_fields,
        "response_to_output_items": response_to_output_items,
        "stamp_lineage": stamp_lineage,
        "strip_token_fields": strip_token_fields,
    },
)

DIGEST = Target(
    module="nemo_gym.token_id_capture.staging.digest",
    releases={"d5b448cf32521081045c5953630542d7a80e08f7437b1491cd792a9b8f0a2f21": "0.7.0"},
    known="""
STAGING_SCHEMA_VERSION = 2
STAGING_DIGEST_VERSION = 2
EXTRAS_DIGEST_VERSION = 1
EMPTY_EXTRAS_DIGEST = computed
_CALL_DIGEST_DOMAIN = b"nemo-gym-staging-call-v2"
_EXTRAS_DIGEST_DOMAIN = b"nemo-gym-staging-extras-v1"
_TOKEN_DIGEST_DOMAIN = b"nemo-gym-staging-prefix-v2"
_CHAIN_DIGEST_DOMAIN = b"nemo-gym-staging-chain-v1"

def encode_token_ids(token_ids: Sequence[int]) -> bytes: ...
def hash_token_ids(token_ids: Sequence[int]) -> str: ...
def compute_chain_hash(parent_chain_hash: str | None, token_ids_delta: Sequence[int]) -> str: ...
def compute_extras_digest(extras: Mapping[str, Any] | None) -> str: ...
def compute_staging_digest(
    *,
    schema_version: int,
    digest_version: int,
    extras_digest_version: int,
    rollout_id: str,
    model_call_id: str,
    parent_call_id: str | None,
    mode: str,
    prev_len: int,
    delta_len: int,
    cum_len: int,
    weight_version: int,
    token_ids_delta: Sequence[int],
    token_mask_delta: Sequence[float],
    generation_log_probs_delta: Sequence[float],
    extras_digest: str,
    chain_hash: str,
    cumulative_hash: str,
) -> str: ...
def build_staging_delta(
    *,
    prompt_token_ids: list[int],
    generated_token_ids: list[int],
    generated_log_probs: list[float],
    prev_len: int,
) -> tuple[list[int], list[float], list[float]]: ...
""",
    replaced={
        name: getattr(staging, name)
        for name in (
            "build_staging_delta",
            "compute_chain_hash",
            "compute_extras_digest",
            "compute_staging_digest",
            "encode_token_ids",
            "hash_token_ids",
        )
    },
)

LINEAGE = Target(
    module="nemo_gym.token_id_capture.lineage",
    releases={"2a1b5c2b6c16eb7a376fc51cbf7b0a7add90a9ca1bc144d6b6453512d349a77e": "0.7.0"},
    replaced={
        "FileLineageStore._fetch_new_entries": reading.fetch_new_entries,
        "FileLineageStore._load_entries": reading.load_entries,
        "FileLineageStore._load_entry": reading.load_entry,
        "FileLineageStore": Made(file_lineage_store),
    },
    asked=frozenset(("FileLineageStore",)),
)

STORE = Target(
    module="nemo_gym.token_id_capture.store",
    releases={"3c18a94d5f02f202a7cf6edc4a7a3bfa4ebb38bc2d7c1e0cdf7472572b7e31a7": "0.7.0"},
    replaced={"TokenCaptureStore._read_entries_unlocked": reading.read_entries},
)

ROUTES = Target(
    module="nemo_gym.token_id_capture.staging.routes",
    releases={"7d9845a6d2c4c554900640c60fb6da12d08e3dd9f899dcb8a24dbcf31347f08a": "0.7.0"},
    replaced={"encode_routed_experts": encode_routed_experts},
)

SEALED = Target(
    module="nemo_gym.token_id_capture.staging.records",
    releases={"654c3b1b46e880e1e1f53013daeead52d752322e64879552610c45e4c050a306": "0.7.0"},
    replaced={"StagedCallBaseSnapshot._validate_base_integrity": validate_seal},
)

BUILDER = Target(
    module="nemo_gym.token_id_capture.builder",
    releases={"f6d54c667b00b78c4ad3c603190b48c020b31cc3cf08be14564a16f21123a622": "0.7.0"},
    replaced={"prefix_merging": Made(prefix_merging), "_BUILDERS.prefix_merging": Made(prefix_merging)},
)

TARGETS = {target.module: target for target in (RECORDS, DIGEST, LINEAGE, STORE, ROUTES, SEALED, BUILDER)}
