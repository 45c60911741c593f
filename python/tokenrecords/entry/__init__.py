"""One record: its fields, its rules and its line of JSON."""

from tokenrecords.entry.model import TokenEntry

__all__ = ["TokenEntry"]  # where pickles of earlier versions look for it
