"""What the workers of a cluster find in files, brought together."""

from __future__ import annotations

import ray

from tokenrecords.verification.findings import Report


class Found:
    """What was found in the files of a data set, as far as it has been read.

    Give one to `read_records` or `read_chains`. Each worker hands in what it found in a file before the file's last
    rows; of a file that is read again, because a worker died or the data set is read once more, the last report counts.

    >>> from tokenrecords.ray import Found
    >>> Found().report().summary()
    '0 records with 0 ids: nothing found'
    """

    def __init__(self) -> None:
        self._reports = ray.remote(num_cpus=0)(_Reports).remote()

    def add(self, path: str, report: Report) -> None:
        """Take what was found in a file, in place of what was found there before; with no path, beside all files."""
        ray.get(self._reports.add.remote(path, report))

    def report(self) -> Report:
        """What was found so far: of whole files what `verify` finds in them, by the files' names."""
        reports: dict[str, Report] = ray.get(self._reports.all.remote())
        # As `verify` has them: what no file of records stands for is last.
        return Report.merged(reports[path] for path in sorted(reports, key=lambda path: (not path, path)))


class _Reports:
    """The reports by file, in a process of their own."""

    def __init__(self) -> None:
        self._by_file: dict[str, Report] = {}

    def add(self, path: str, report: Report) -> None:
        self._by_file[path] = report

    def all(self) -> dict[str, Report]:
        return self._by_file
