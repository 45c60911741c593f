"""What the staging digests say, in the plainest Python: the tests' other opinion on every value."""

import hashlib
import math
import struct


def number(value):
    return struct.pack(">Q", value)


def blob(data):
    return number(len(data)) + data


def text(value):
    return blob(value.encode())


def encode(ids):
    return number(len(ids)) + b"".join(number(int(id_)) for id_ in ids)


def floats(values):
    return number(len(values)) + b"".join(struct.pack(">f", float(value)) for value in values)


def typed(value):
    if value is None:
        return b"N"
    if value is True or value is False:
        return b"B" + bytes([value])
    if isinstance(value, int):
        return b"I" + struct.pack(">q", value)
    if isinstance(value, float):
        assert math.isfinite(value)
        return b"F" + struct.pack(">d", value)
    if isinstance(value, str):
        return b"S" + text(value)
    if isinstance(value, list):
        return b"L" + number(len(value)) + b"".join(map(typed, value))
    members = sorted((key.encode(), item) for key, item in value.items())
    return b"D" + number(len(members)) + b"".join(blob(key) + typed(item) for key, item in members)


def sha(*parts):
    return hashlib.sha256(b"".join(parts)).hexdigest()


def ids_digest(ids):
    return sha(b"nemo-gym-staging-prefix-v2", encode(ids))


def chain_hash(parent, ids):
    return sha(b"nemo-gym-staging-chain-v1", b"\0" if parent is None else b"\1" + bytes.fromhex(parent), encode(ids))


def extras_digest(extras):
    return sha(b"nemo-gym-staging-extras-v1", b"\1", typed(extras))


def call_digest(call, versions=(2, 2, 1)):
    parent = call["parent_call_id"]
    return sha(
        b"nemo-gym-staging-call-v2",
        bytes(versions),
        text(call["rollout_id"]),
        text(call["model_call_id"]),
        b"\0" if parent is None else b"\1" + text(parent),
        text(call["mode"]),
        *(number(call[name]) for name in ("prev_len", "delta_len", "cum_len", "weight_version")),
        blob(encode(call["token_ids_delta"])),
        blob(floats(call["token_mask_delta"])),
        blob(floats(call["generation_log_probs_delta"])),
        bytes.fromhex(call["extras_digest"]),
        b"\1" + bytes.fromhex(call["chain_hash"]),
        b"\1" + bytes.fromhex(call["cumulative_hash"]),
    )
