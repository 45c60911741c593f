"""Records as Arrow tables and Parquet files; needs the extra `arrow`."""

from tokenrecords.files.arrow import RECORD_SCHEMA, from_arrow, to_arrow
from tokenrecords.files.parquet import read_parquet, scan_parquet, write_parquet

__all__ = ["RECORD_SCHEMA", "from_arrow", "read_parquet", "scan_parquet", "to_arrow", "write_parquet"]
