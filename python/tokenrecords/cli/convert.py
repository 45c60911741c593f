"""The command `tokenrecords convert`: which files become which, and what it says of them."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from tokenrecords.capture.convert import convert as converted
from tokenrecords.capture.convert import targets
from tokenrecords.capture.served import call_files
from tokenrecords.cli.paths import existing
from tokenrecords.cli.progress import shown_progress
from tokenrecords.entry.errors import one_line
from tokenrecords.files.remote import as_path


def convert(
    source: Annotated[
        Path,
        typer.Argument(metavar="IN", parser=existing, help="A file of records, or a directory; or what capture takes."),
    ],
    out: Annotated[
        Path,
        typer.Argument(
            metavar="OUT",
            parser=as_path,
            help="A file whose name ends with .parquet, .jsonl, .jsonl.gz or .jsonl.zst; or a directory, which gets a "
            "file for each: Parquet for JSONL, JSONL for Parquet.",
        ),
    ],
    *,
    ids: Annotated[str, typer.Option(metavar="int32|int64|uint64", help="The type of ids in Parquet.")] = "int32",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the files that are there.")] = False,
) -> None:
    """Write records as Parquet or JSONL, and read them again: counts and digests must be those of what was read.

    Exit status: 0 if every record is in OUT, 1 if one can't be read or written, 2 if the command can't be carried out.
    A file that fails is as it was.
    """
    if ids not in ("int32", "int64", "uint64"):
        raise typer.BadParameter(f"--ids is {ids}: int32, int64 or uint64 is needed")
    try:
        files, _ = call_files([source])
        wanted = targets(files, out)
    except (FileNotFoundError, ValueError) as error:
        raise typer.BadParameter(str(error)) from error
    for _, target in wanted:
        if target.exists() and not overwrite:
            raise typer.BadParameter(f"{target} is already there: say --overwrite")

    records = done = 0
    sizes = {file: file.stat().st_size for file in files}
    with shown_progress() as progress:
        task = progress.add_task("convert", total=sum(sizes.values()))
        for from_files, target in wanted:
            try:
                target.parent.mkdir(parents=True, exist_ok=True)
                count = converted(from_files, target, ids=ids)  # type: ignore[arg-type]  # one of them
            except ValueError as error:
                typer.secho(one_line(error), fg="red", err=True)
                raise typer.Exit(1) from error
            except OSError as error:
                raise typer.BadParameter(str(error)) from error
            records += count.records
            done += count.ids
            progress.advance(task, sum(sizes[file] for file in from_files))
    before, after = sum(sizes.values()), sum(target.stat().st_size for _, target in wanted)
    what = f"{records:,} records with {done:,} ids written to {out} and read back equal"
    typer.secho(f"{what}: {before:,} bytes became {after:,}", bold=True)
