"""Objects that hold values as few do: exports of arrays, and integers that are none yet."""


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


class NeedsCpu:
    """A tensor on another device: its `__array__` says what to do."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")


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
