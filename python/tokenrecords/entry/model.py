"""One served model call as a training record: `TokenEntry`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tokenrecords.entry import fields, json_line
from tokenrecords.entry.assigned import is_as_validated
from tokenrecords.entry.errors import one_line
from tokenrecords.entry.resolution import ParentResolutionStatus, check_parent
from tokenrecords.tokens.arrays import Fault, as_dtype, as_list, id_array, integer_dtype, log_prob_array, same
from tokenrecords.tokens.names import ARRAY_FIELDS, GENERATION, ID_FIELDS, LOG_PROBS

if TYPE_CHECKING:
    from collections.abc import Mapping

TOKEN_ENTRY_MIN_SCHEMA_VERSION = 1
TOKEN_ENTRY_RECORD_SCHEMA_VERSION = 1

TokenIds: TypeAlias = list[int] | npt.NDArray[np.integer[Any]]
LogProbs: TypeAlias = list[float] | npt.NDArray[np.floating[Any]]

_ORIGIN = "_origin"


class TokenEntry(BaseModel):
    """The exact tokens of one served model call.

    A field given an array keeps that array, without a copy (copy it first if its memory is used again); a list, tuple,
    set, range or iterator becomes a list. Unknown fields are kept (`model_extra`). Assignment is not validated.

    Attributes:
        schema_version: Version of the record's layout; a newer one than this reader's is refused.
        rollout_id: The training sample that the call belongs to.
        model_call_id: The call.
        model: The model's name as the server gave it.
        prompt_token_ids: The exact ids that the engine ran on: a list, or an integer array of shape `(prompt,)`.
        generation_token_ids: The sampled ids: a list, or an integer array of shape `(generation,)`.
        generation_log_probs: Natural log of each sampled id's probability: a list, or a float16, float32 or float64
            array of shape `(generation,)`. In JSON a non-finite value is the string "NaN", "Infinity" or "-Infinity".
        routed_experts: Expert routes as the engine gave them. In JSON an array of shape `(tokens, layers, top_k)`
            becomes an `nrlre1` string.
        output_items: The response's content items, without token arrays.
        token_item_index: The place in `output_items` of the item that carried the tokens.
        response_id: The server's id of the response.
        created_at: Seconds since the epoch.
        parent_call_id: The earlier call whose cumulative sequence starts this prompt.
        cum_len: Number of ids in prompt and generation of the full sequence.
        digest: Digest of that sequence, see `compute_digest`.
        parent_resolution: What is known about the parent; None where nobody decided.
        continuation_fingerprint: Of the capturing service: what the call continues, by content.
        continuation_context_len: Of the capturing service: length of that context.
        continuation_context_digest: Of the capturing service: digest of that context.
        parent_resolution_reason: Why the parent is unresolved.
        fingerprint_version: Version of `continuation_fingerprint`.
        prompt_is_delta: True if `prompt_token_ids` holds only what follows the parent's cumulative sequence.
        prefix_requested: Of the capturing service: it asked the engine to continue a token prefix.
        prefix_supplied: Of the capturing service: the engine was given that prefix.

    Raises:
        pydantic.ValidationError: A field of the wrong type or dtype, a newer or too old `schema_version`, generation
            arrays of different length, a `token_item_index` outside `output_items`, or parent fields that contradict
            each other.

    >>> entry = TokenEntry(
    ...     rollout_id="math-7", model_call_id="call-0",
    ...     prompt_token_ids=np.array([1, 2], np.int32), generation_token_ids=[3], generation_log_probs=[-0.5],
    ... )
    >>> entry.prompt_token_ids
    array([1, 2], dtype=int32)
    >>> entry == entry.as_lists()
    True
    """

    model_config = ConfigDict(extra="allow", protected_namespaces=())

    schema_version: int = TOKEN_ENTRY_RECORD_SCHEMA_VERSION
    rollout_id: str
    model_call_id: str
    model: str = ""
    prompt_token_ids: Annotated[TokenIds, fields.TOKEN_IDS]
    generation_token_ids: Annotated[TokenIds, fields.TOKEN_IDS]
    generation_log_probs: Annotated[LogProbs, fields.LOG_PROBS]
    routed_experts: Annotated[Any | None, fields.ROUTED_EXPERTS] = None
    output_items: list[dict[Any, Any]] = Field(default_factory=list)
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
    def _refuse_a_newer_record(self) -> Self:
        """What the fields must fulfil together; the name is that of the replaced module.

        Raises:
            ValueError: The first rule that is broken, with the values.
        """
        # pydantic is slow to give a field, and this runs for each entry.
        values = self.__dict__
        version = values["schema_version"]
        if version > TOKEN_ENTRY_RECORD_SCHEMA_VERSION:
            raise ValueError(
                f"schema_version is {version}, but this reader understands up to {TOKEN_ENTRY_RECORD_SCHEMA_VERSION}: "
                "upgrade tokenrecords to read it"
            )
        if version < TOKEN_ENTRY_MIN_SCHEMA_VERSION:
            raise ValueError(
                f"schema_version is {version}, below the supported minimum {TOKEN_ENTRY_MIN_SCHEMA_VERSION}"
            )
        ids, log_probs = len(values[GENERATION]), len(values[LOG_PROBS])
        if ids != log_probs:
            raise ValueError(
                f"generation_token_ids and generation_log_probs must have the same length, got {ids} and {log_probs}"
            )
        index, items = values["token_item_index"], values["output_items"]
        if index is not None and not 0 <= index < len(items):
            raise ValueError(f"token_item_index {index} is outside output_items, which has {len(items)} items")
        check_parent(values["parent_resolution"], values["parent_call_id"], is_delta=values["prompt_is_delta"])
        return self

    def __eq__(self, other: object) -> bool:
        """Equal types and equal values, whatever holds them; NaN equals NaN in the same place."""
        if not isinstance(other, TokenEntry):
            return NotImplemented
        return (
            type(self) is type(other)
            and same(self.__dict__, other.__dict__)
            and same(self.__pydantic_extra__, other.__pydantic_extra__)
            and same(_private(self), _private(other))
        )

    __hash__ = None  # type: ignore[assignment]

    def model_dump(self, *, mode: str = "python", **options: Any) -> dict[str, Any]:
        """As pydantic's; `mode="json"` alone does not have it look at each item of a list."""
        values = self.__dict__
        lists = json_line.plain_lists(values) if mode == "json" and not options and type(self) is TokenEntry else None
        if lists is None:
            return super().model_dump(mode=mode, **options)
        return {**values, **super().model_dump(mode=mode, exclude=set(ARRAY_FIELDS)), **lists}

    @classmethod
    def from_json(
        cls,
        data: bytes | bytearray | str,
        *,
        arrays: bool = True,
        dtype: npt.DTypeLike | None = None,
        log_prob_dtype: npt.DTypeLike = "float64",
    ) -> Self:
        """A record from its JSON text, read straight into arrays.

        Takes what `model_validate_json` takes. The other arguments are those of `scan_jsonl`.

        Raises:
            pydantic.ValidationError: The text is not a record.
            ValueError: An id does not fit `dtype`.
            TypeError: `data` is neither bytes nor text.

        >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[1, 2], generation_token_ids=[3],
        ...                    generation_log_probs=[-0.5])
        >>> TokenEntry.from_json(entry.to_json()).prompt_token_ids
        array([1, 2], dtype=int32)
        """
        options = json_line.Options.of(arrays=arrays, dtype=dtype, log_prob_dtype=log_prob_dtype)
        if not isinstance(data, bytes | bytearray | str):
            raise TypeError(f"data is {type(data).__name__}: bytes or str is needed")
        # A lone surrogate becomes bytes that pydantic refuses.
        text = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else bytes(data)
        # A subclass may have validators that look at the arrays, so pydantic reads those itself.
        return json_line.build(cls, text, json_line.scan(text, options) if cls is TokenEntry else None, options)

    def to_json(self) -> bytes:
        """The record as a line of JSON without its line break: UTF-8, keys sorted, no spaces.

        The bytes are those of `orjson.dumps(entry.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)`: floats in
        their shortest form, and a NaN or infinity in output items or extra fields becomes null. A lone surrogate in a
        text (output items, extra fields, `model`, reasons) becomes U+FFFD, with a warning that names call and field; in
        what names a call (rollout, call, parent, response) and in keys it is an error.

        Raises:
            ValueError: The entry could not be read back: a rule of the fields is broken, `created_at` is not finite, a
                value that JSON does not have, an integer beyond 64 bits, or nesting deeper than 200. The message names
                call and field.
        """
        try:
            return json_line.dump(self._validated())
        except ValueError as error:
            raise unwritable(self, error) from error

    def json_values(self) -> dict[str, Any]:
        """The fields as JSON has them, but token ids and log-probs as they are held; for writers of other formats.

        Raises:
            ValueError: As `to_json`, but for numbers: those of Python are kept.
        """
        try:
            return json_line.json_values(self._validated())
        except ValueError as error:
            raise unwritable(self, error) from error

    def _validated(self) -> Self:
        """The entry itself if it is as validation makes it, else a copy that is: assignment is not validated."""
        if type(self) is TokenEntry and is_as_validated(self.__dict__):
            return self._refuse_a_newer_record()  # type: ignore[operator, no-any-return]  # a method all the same
        return type(self).model_validate(dict(self))

    def as_lists(self) -> Self:
        """A copy whose token ids and log-probs are lists of Python ints and floats; all else is shared.

        >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=np.arange(2),
        ...                    generation_token_ids=[], generation_log_probs=[])
        >>> entry.as_lists().prompt_token_ids
        [0, 1]
        """
        return self._with({name: as_list(getattr(self, name)) for name in ARRAY_FIELDS})

    def as_arrays(self, dtype: npt.DTypeLike | None = None) -> Self:
        """A copy whose token ids and log-probs are arrays; all else is shared.

        Args:
            dtype: The integer dtype of the ids. Without it a list becomes the first of int32, int64 and uint64 that
                holds its ids, and stays a list where none does (2**64, or a negative id beside 2**63); an array
                stays as it is. Log-probs become float64, float arrays stay as they are.

        Raises:
            TypeError: `dtype` is not an integer dtype, or an assigned value is not an integer or a number; the message
                names field, position and value.
            ValueError: An id does not fit `dtype`; the message names field, position and id.

        >>> entry = TokenEntry(rollout_id="r", model_call_id="c", prompt_token_ids=[7],
        ...                    generation_token_ids=[], generation_log_probs=[])
        >>> entry.as_arrays().prompt_token_ids
        array([7], dtype=int32)
        >>> entry.as_arrays("uint8").generation_token_ids
        array([], dtype=uint8)
        """
        wanted = None if dtype is None else integer_dtype(dtype)
        arrays: dict[str, Any] = {}
        for name in ARRAY_FIELDS:
            value = getattr(self, name)
            try:
                if name in ID_FIELDS:
                    ids = id_array(value)
                    arrays[name] = ids if wanted is None else as_dtype(ids, wanted)
                else:
                    arrays[name] = log_prob_array(value)
            except Fault as fault:
                raise fault.error(name) from None
        return self._with(arrays)

    def _with(self, values: Mapping[str, Any]) -> Self:
        # Not a way round validation: the values are those of the fields, in another container. Which fields were
        # set must not change with the container.
        copy = self.model_copy()
        copy.__dict__.update(values)
        return copy


def unwritable(entry: TokenEntry, error: Exception) -> ValueError:
    """The error of a record that can't be written, which names its call."""
    call_id, rollout_id = (getattr(entry, name, None) for name in ("model_call_id", "rollout_id"))
    return ValueError(f"model call {call_id!r} of rollout {rollout_id!r} can't be written: {one_line(error)}")


def _private(entry: TokenEntry) -> dict[str, Any]:
    """The private attributes of a subclass."""
    private = entry.__pydantic_private__ or {}
    return {name: value for name, value in private.items() if name != _ORIGIN}


def set_origin(entry: TokenEntry, path: str, line: int) -> None:
    """Note the file and line that an entry was read from; copies keep it, equality passes over it."""
    # Where pydantic keeps private attributes. A declared one would cost every construction a call.
    object.__setattr__(entry, "__pydantic_private__", {_ORIGIN: (path, line)})


def origin(entry: TokenEntry) -> tuple[str, int] | None:
    """The file and line that an entry was read from, if it was."""
    private = entry.__pydantic_private__
    return private.get(_ORIGIN) if private else None
