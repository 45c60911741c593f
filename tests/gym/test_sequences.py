"""Sequences of many rollouts: what two records share is held once, and no more is held than may be."""

import numpy as np
import pytest
from tokenrecords.gym.sequences import Sequences


def ids(*parts, dtype=np.int32):
    return np.concatenate([np.arange(*part) if isinstance(part, tuple) else [part] for part in parts]).astype(dtype)


def held(sequences, rollout_id, place):
    parts = sequences.get(rollout_id, place)
    return None if parts is None else [id_ for part in parts for id_ in part.tolist()]


def test_what_a_record_shares_with_the_newest_is_held_once():
    sequences = Sequences(100)
    records = [ids((0, 10)), ids((0, 10)), ids((0, 30)), ids((0, 10), 7, 8), ids((40, 45)), ids((40, 45), 1)]
    for place, record in enumerate(records):
        sequences.put("r", place, record)
    assert [held(sequences, "r", place) for place in range(6)] == [record.tolist() for record in records]
    assert [len(sequences.get("r", place)) for place in range(6)] == [1, 2, 3, 3, 1, 2]
    assert len(sequences) == 10 + 20 + 2 + 5 + 1


def test_other_rollouts_share_nothing():
    sequences = Sequences(100)
    sequences.put("r1", 0, ids((0, 10)))
    sequences.put("r2", 0, ids((0, 11)))
    assert len(sequences) == 21
    assert held(sequences, "r2", 0) == list(range(11))


def test_what_is_shared_frees_the_memory_of_the_whole():
    sequences = Sequences(100)
    sequences.put("r", 0, ids((0, 10)))
    sequences.put("r", 1, ids((0, 12)))
    assert sequences.get("r", 1)[1].base is None


@pytest.mark.parametrize(("first", "second"), [(np.int64, np.uint64), (np.uint64, np.int64), (np.int32, np.uint64)])
def test_ids_are_compared_by_value(first, second):
    sequences = Sequences(100)
    sequences.put("r", 0, ids((0, 3), dtype=first))
    sequences.put("r", 1, np.append(np.arange(3, dtype=second), np.array([2**31], second)))
    assert held(sequences, "r", 1) == [0, 1, 2, 2**31]
    assert len(sequences) == 4
    sequences = Sequences(100)
    sequences.put("r", 0, np.array([2**53], np.int64))
    sequences.put("r", 1, np.array([2**53 + 1], np.uint64))
    assert held(sequences, "r", 1) == [2**53 + 1]
    assert len(sequences) == 2


def test_a_place_is_held_once():
    sequences = Sequences(100)
    sequences.put("r", 0, ids((0, 10)))
    sequences.put("r", 1, ids((0, 12)))
    sequences.put("r", 0, ids((0, 10)))
    assert held(sequences, "r", 0) == list(range(10))
    assert len(sequences) == 12


def test_the_rollout_that_was_not_asked_for_the_longest_goes_first():
    sequences = Sequences(10)
    sequences.put("r1", 0, ids((0, 4)))
    sequences.put("r2", 0, ids((0, 3)))
    sequences.put("r3", 0, ids((0, 3)))
    assert sequences.get("r1", 0) is not None
    assert sequences.get("r2", 1) is None
    sequences.put("r4", 0, ids((0, 2)))
    assert [held(sequences, rollout_id, 0) is None for rollout_id in ("r1", "r2", "r3", "r4")] == [
        False,
        True,
        False,
        False,
    ]
    assert len(sequences) == 9
    sequences.put("r3", 1, ids((9, 11)))
    assert held(sequences, "r1", 0) is None
    assert len(sequences) == 7


def test_a_rollout_that_is_too_long_is_not_held():
    sequences = Sequences(10)
    sequences.put("r", 0, ids((0, 4)))
    sequences.put("r", 1, ids((0, 11)))
    assert len(sequences) == 0
    assert sequences.get("r", 0) is None
    assert sequences.get("r", 1) is None


def test_what_is_dropped_is_not_counted():
    sequences = Sequences(10)
    sequences.put("r1", 0, ids((0, 4)))
    sequences.put("r2", 0, ids((0, 3)))
    sequences.drop("r1")
    sequences.drop("r1")
    assert len(sequences) == 3
    assert sequences.get("none", 0) is None
    sequences.clear()
    assert len(sequences) == 0
    assert sequences.get("r2", 0) is None


def test_a_rollout_that_gets_a_record_counts_as_asked_for():
    sequences = Sequences(10)
    sequences.put("r1", 0, ids((0, 4)))
    sequences.put("r2", 0, ids((0, 4)))
    sequences.put("r1", 1, ids((0, 4), 9))
    sequences.put("r3", 0, ids((0, 3)))
    assert [held(sequences, rollout_id, 0) is None for rollout_id in ("r1", "r2", "r3")] == [False, True, False]


def test_as_many_rollouts_go_as_there_must_be_room():
    sequences = Sequences(10)
    for rollout_id, count in (("r1", 4), ("r2", 4), ("r3", 9)):
        sequences.put(rollout_id, 0, ids((0, count)))
    assert len(sequences) == 9
    assert [held(sequences, rollout_id, 0) is None for rollout_id in ("r1", "r2", "r3")] == [True, True, False]
