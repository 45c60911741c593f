"""One record: its fields, its rules and its line of JSON."""

from tokenrecords.entry.model import TokenEntry
from tokenrecords.entry.resolution import ParentResolutionStatus

__all__ = ["ParentResolutionStatus", "TokenEntry"]  # where pickles of earlier versions look for them
