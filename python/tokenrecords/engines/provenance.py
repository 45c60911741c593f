"""What a response says of its own making, kept as extra fields of the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tokenrecords.engines.choice import Source
from tokenrecords.engines.payload import mapping

if TYPE_CHECKING:
    from tokenrecords.engines.payload import Body

_OF_THE_CALL: Final = "weight_version"  # which weights sampled it
# What belongs to one choice alone, and under which names engines say it.
_OF_TOKENS: Final = {
    "weight_versions": ("weight_versions",),
    "sampling_mask": ("sampling_mask", "output_token_sampling_mask"),
    "sampling_log_probs": ("sampling_log_probs", "output_token_sampling_logprobs"),
    "indexer_topk": ("indexer_topk",),
}
PER_TOKEN: Final = frozenset(_OF_TOKENS)
_FIELDS: Final = {_OF_THE_CALL: _OF_THE_CALL} | {name: field for field, said in _OF_TOKENS.items() for name in said}
_NEMO_GYM: Final = "ng_"
_BELOW: Final = ("metadata", "meta_info")  # objects of their holder that say it as well


def kept(prefix: str, holder: Body) -> list[Source]:
    """What a choice, its message, an extension or an item says, on itself, in its `metadata` and its `meta_info`."""
    found = _named(prefix, holder)
    for name in _BELOW:
        if holder.get(name) is not None:
            found += _named(f"{prefix}{name}.", mapping(holder[name]))
    return found


def _named(prefix: str, holder: Body) -> list[Source]:
    return [
        Source(_FIELDS.get(name, name), f"{prefix}{name}", value)
        for name, value in holder.items()
        if value is not None and (name in _FIELDS or (isinstance(name, str) and name.startswith(_NEMO_GYM)))
    ]


def kept_on_payload(body: Body, choices: int) -> list[Source]:
    """What a payload of so many choices says of each."""
    found = kept("", body)
    # What is said of each token belongs to one choice, and nothing says to which.
    return found if choices == 1 else [source for source in found if source.field not in PER_TOKEN]
