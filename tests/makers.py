"""Small objects that many tests need."""

from tokenrecords import TokenEntry

IDS = {"prompt_token_ids": [1, 2], "generation_token_ids": [3], "generation_log_probs": [-0.5]}
DELTA = {"prompt_is_delta": True, "parent_resolution": "resolved", "parent_call_id": "p"}


def make_entry(**changes):
    """An entry with the fields that have to be there, and `changes`."""
    return TokenEntry(**{"rollout_id": "r", "model_call_id": "c", **IDS, **changes})


class Array:
    """An object that has nothing but `__array__`, as tensors do."""

    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return self.array


class DLPack:
    """An object that has nothing but DLPack."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class Index:
    """An object with an `__index__` that raises what it is given, or returns what the given function returns."""

    def __init__(self, action):
        self.action = action

    def __index__(self):
        if isinstance(self.action, BaseException | type):
            raise self.action
        return self.action()

    def __repr__(self):
        return "<an index>"
