"""What a response says of its own making, kept as extra fields of the record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tokenrecords.engines.choice import Source
from tokenrecords.engines.payload import mapping

if TYPE_CHECKING:
    from tokenrecords.engines.payload import Body

_OF_THE_CALL: Final = "weight_version"  # which weights sampled it
PER_TOKEN: Final = frozenset({"sampling_mask", "indexer_topk"})  # of one choice alone
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
        Source(name, f"{prefix}{name}", value)
        for name, value in holder.items()
        if (name == _OF_THE_CALL or name in PER_TOKEN or (isinstance(name, str) and name.startswith(_NEMO_GYM)))
        and value is not None
    ]


def kept_on_payload(body: Body, choices: int) -> list[Source]:
    """What a payload of so many choices says of each."""
    found = kept("", body)
    # What is said of each token belongs to one choice, and nothing says to which.
    return found if choices == 1 else [source for source in found if source.field not in PER_TOKEN]
