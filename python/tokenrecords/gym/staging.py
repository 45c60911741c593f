"""The digests of staged calls: the names of `nemo_gym.token_id_capture.staging.digest` (nemo-gym 0.7.0).

>>> import numpy
>>> hash_token_ids([1, 2]) == hash_token_ids(numpy.array([1, 2], numpy.int32))
True
"""

from tokenrecords.gym.layout import Layout

LAYOUT = Layout(
    schema_version=2,
    digest_version=2,
    extras_digest_version=1,
    prefix_domain=b"nemo-gym-staging-prefix-v2",
    chain_domain=b"nemo-gym-staging-chain-v1",
    extras_domain=b"nemo-gym-staging-extras-v1",
    call_domain=b"nemo-gym-staging-call-v2",
)
"""What nemo-gym 0.7.0 hashes; `dataclasses.replace` makes another version of it."""

STAGING_SCHEMA_VERSION = LAYOUT.schema_version
STAGING_DIGEST_VERSION = LAYOUT.digest_version
EXTRAS_DIGEST_VERSION = LAYOUT.extras_digest_version

encode_token_ids = LAYOUT.encode_token_ids
hash_token_ids = LAYOUT.hash_token_ids
compute_chain_hash = LAYOUT.compute_chain_hash
compute_extras_digest = LAYOUT.compute_extras_digest
compute_staging_digest = LAYOUT.compute_staging_digest
build_staging_delta = LAYOUT.build_staging_delta

EMPTY_EXTRAS_DIGEST = compute_extras_digest(None)

__all__ = [
    "EMPTY_EXTRAS_DIGEST",
    "EXTRAS_DIGEST_VERSION",
    "LAYOUT",
    "STAGING_DIGEST_VERSION",
    "STAGING_SCHEMA_VERSION",
    "Layout",
    "build_staging_delta",
    "compute_chain_hash",
    "compute_extras_digest",
    "compute_staging_digest",
    "encode_token_ids",
    "hash_token_ids",
]
