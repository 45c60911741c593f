"""`Chain.routed_experts`: one row a token, of the calls that said it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.factories import call, delta
from tokenrecords import Chain, TokenEntry, build_chains, encode_routed_experts, verify


def with_routes(entry: TokenEntry, rows: range, encoding: str | None = None, **fields: Any) -> TokenEntry:
    routes: Any = np.array(rows, np.int16).reshape(-1, 1, 1)
    routes = encode_routed_experts(routes, encoding) if encoding else routes
    return entry.model_copy(update={"routed_experts": {**routes, **fields} if fields else routes})


def main(*entries: TokenEntry) -> Chain:
    chain = build_chains(entries).main
    assert chain is not None
    return chain


A, B, C = call("a", [1, 2], [3]), call("b", [1, 2, 3, 4], [5], "a"), call("c", [1, 2, 3, 4, 5, 6], [7], "b")


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([with_routes(A, range(3)), with_routes(B, range(10, 15))], [0, 1, 2, 13, 14]),
        # Engines do not route the last token that they sample: the next call says its row.
        ([with_routes(A, range(2)), with_routes(B, range(10, 14))], [0, 1, 12, 13, -1]),
        ([with_routes(A, range(2)), B], [0, 1, -1, -1, -1]),
        ([A, with_routes(B, range(10, 15))], [10, 11, 12, 13, 14]),
        ([with_routes(A, range(3)), B, with_routes(C, range(20, 27))], [0, 1, 2, 23, 24, 25, 26]),
        ([A, with_routes(B, range(10, 15)), with_routes(C, range(20, 27))], [10, 11, 12, 13, 14, 25, 26]),
        ([with_routes(A, range(3)), with_routes(B, range(10, 15), "nrlre1")], [0, 1, 2, 13, 14]),
        ([with_routes(A, range(3), "npy"), with_routes(B, range(10, 15), "lists")], [0, 1, 2, 13, 14]),
        # An object may start later: its rows are those of the last tokens.
        ([with_routes(A, range(3)), with_routes(B, range(10, 12), "object", start=3)], [0, 1, 2, 10, 11]),
        ([A, with_routes(B, range(10, 12), "object", start=2)], [-1, -1, 10, 11, -1]),
    ],
)
def test_each_token_has_the_row_of_the_call_that_brought_it(entries: list[TokenEntry], expected: list[int]) -> None:
    chain = main(*entries)
    routes = chain.routed_experts()
    assert routes is not None
    assert routes.shape == (len(chain), 1, 1)
    assert routes.dtype.kind == "i"
    assert routes.ravel().tolist() == expected


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        # B adds an id to A's three, and generates one.
        (with_routes(B, range(10, 12)), [0, 1, 2, 10, 11]),
        (with_routes(B, range(10, 11)), [0, 1, 2, 10, -1]),
        (with_routes(B, range(10, 12), "nrlre1"), [0, 1, 2, 10, 11]),
        (with_routes(B, range(10, 12), "object", start=3), [0, 1, 2, 10, 11]),
        (with_routes(B, range(10, 15)), [0, 1, 2, 13, 14]),
        (with_routes(B, range(10, 14)), [0, 1, 2, 13, -1]),
    ],
)
def test_routes_of_a_delta_record_are_of_all_its_tokens_or_of_what_it_adds(b: TokenEntry, expected: list[int]) -> None:
    entries = [with_routes(A, range(3)), delta(b, 3)]
    assert not verify(entries).findings
    routes = main(*entries).routed_experts()
    assert routes is not None
    assert routes.ravel().tolist() == expected


def test_no_routes_are_none() -> None:
    assert main(A, B).routed_experts() is None


def test_flat_numbers_need_their_shape() -> None:
    flat = main(with_routes(A, range(4), "int32"))
    with pytest.raises(ValueError, match=r"^call 'a': .*shape"):
        flat.routed_experts()
    routes = flat.routed_experts(shape=(2, 1))
    assert routes is not None
    assert routes.tolist() == [[[0], [1]], [[2], [3]], [[-1], [-1]]]


def test_the_number_of_rows_can_be_asked_for() -> None:
    chain = main(with_routes(A, range(2)))
    assert chain.routed_experts(rows="tokens-1") is not None
    with pytest.raises(ValueError, match=r"^call 'a': .* 3 tokens with rows='tokens'"):
        chain.routed_experts(rows="tokens")


def test_rows_that_are_missing_are_an_error() -> None:
    with pytest.raises(
        ValueError, match=r"^call 'a': routed_experts has 1 rows, but 3 tokens with rows='tokens' want 3$"
    ):
        main(with_routes(A, range(1))).routed_experts()
    for b in (with_routes(B, range(2)), delta(with_routes(B, range(3)), 3)):
        assert verify([A, b]).counts == {"routes_incomplete": 1}
        with pytest.raises(ValueError, match=r"^call 'b': routed_experts has \d rows, but 5 tokens"):
            main(A, b).routed_experts()


def test_routes_of_two_shapes_are_an_error() -> None:
    b = B.model_copy(update={"routed_experts": np.zeros((5, 2, 1), np.int16)})
    message = r"^chain 'main' has routes of several \(layers, top_k\): \(1, 1\), \(2, 1\)$"
    with pytest.raises(ValueError, match=message):
        main(with_routes(A, range(3)), b).routed_experts()


def test_a_dtype_without_a_sign_is_widened() -> None:
    for dtype, wide, value in ((np.uint64, np.int64, 2**40), (np.uint8, np.int16, 255), (np.int8, np.int8, 7)):
        routes = main(A.model_copy(update={"routed_experts": np.full((2, 1, 1), value, dtype)})).routed_experts()
        assert routes is not None
        assert (routes.dtype, routes.ravel().tolist()) == (wide, [value, value, -1])


def test_experts_that_no_int64_holds_are_an_error() -> None:
    huge = A.model_copy(update={"routed_experts": np.full((3, 1, 1), 2**63, np.uint64)})
    with pytest.raises(ValueError, match=r"experts below 2\*\*63 are needed"):
        main(huge).routed_experts()
