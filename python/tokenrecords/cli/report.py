"""The command `tokenrecords report`: which files become a page, and what it says of it."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - typer reads the annotations
from typing import Annotated

import typer

from tokenrecords.capture.served import call_files
from tokenrecords.cli.paths import existing
from tokenrecords.cli.progress import shown_progress


def report(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATHS...", parser=existing, help="Files of records, directories; or what capture takes."
        ),
    ],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE.html", help="The page.")],
    tokenizer: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|NAME", help="A tokenizer.json, or the name of one in the local cache of Hugging Face."
        ),
    ] = None,
    max_rollouts: Annotated[
        int, typer.Option(metavar="N", min=1, help="The most rollouts whose tokens are on the page.")
    ] = 200,
    only: Annotated[
        str | None,
        typer.Option(
            metavar="findings|untrainable",
            help="Rollouts with an error or a warning alone, or those alone that are not trainable.",
        ),
    ] = None,
) -> None:
    """Write an HTML page that shows rollouts token by token; it needs no network and no server.

    Exit status: 0 if the page was written, 2 if the command can't be carried out. What is wrong with records is on it.
    """
    from tokenrecords.report.reading import Reading  # noqa: PLC0415 - an extra that the other commands do without
    from tokenrecords.report.write import Options, write_page  # noqa: PLC0415

    try:
        options = Options(out, tokenizer, max_rollouts, only)  # type: ignore[arg-type]  # checked next
        options.check()
        files, sides = call_files(paths)
        with shown_progress() as progress:
            sizes = {str(file): file.stat().st_size for file in files}
            task = progress.add_task("report", total=sum(sizes.values()))
            reading = Reading.of_files(files, sides, read=lambda path: progress.advance(task, sizes.get(path, 0)))
            written = write_page(reading, options)
    except (ValueError, OSError) as error:
        raise typer.BadParameter(str(error)) from error
    some = "" if written.shown == written.rollouts else f"{written.shown:,} of "
    noun = "rollout" if written.rollouts == 1 else "rollouts"
    typer.secho(f"{some}{written.rollouts:,} {noun} written to {out}: {out.stat().st_size:,} bytes", bold=True)
