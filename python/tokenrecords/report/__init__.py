"""The page of rollouts, token by token; writing it needs the extra `report`."""

from tokenrecords.report.write import Written, write_report

__all__ = ["Written", "write_report"]
