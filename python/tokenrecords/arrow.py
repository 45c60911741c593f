"""Records and chains as Arrow tables, records as Parquet files; needs the extra `arrow`."""

from tokenrecords.files.arrow import RECORD_SCHEMA, from_arrow, to_arrow
from tokenrecords.files.parquet import read_parquet, scan_parquet, write_parquet
from tokenrecords.training.arrow import CHAIN_SCHEMA, chains_from_arrow, chains_to_arrow

__all__ = [
    "CHAIN_SCHEMA",
    "RECORD_SCHEMA",
    "chains_from_arrow",
    "chains_to_arrow",
    "from_arrow",
    "read_parquet",
    "scan_parquet",
    "to_arrow",
    "write_parquet",
]
