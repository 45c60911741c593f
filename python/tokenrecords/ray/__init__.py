"""Records and chains as Ray Data sets; needs the extra `ray`."""

from tokenrecords.ray.data import link_table, read_chains, read_records
from tokenrecords.ray.found import Found

__all__ = ["Found", "link_table", "read_chains", "read_records"]
