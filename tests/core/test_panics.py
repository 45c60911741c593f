"""A panic of the extension, if one came, would be an exception that callers catch; rust/python/panics.rs makes some."""

import tokenrecords


def test_the_built_extensions_panics_are_runtime_errors():
    assert tokenrecords.compute_digest([1])
    [panic] = [error for error in RuntimeError.__subclasses__() if error.__name__ == "PanicException"]
    assert str(panic("index out of bounds")) == "a bug in tokenrecords, please report it: index out of bounds"
    assert issubclass(panic, Exception)
