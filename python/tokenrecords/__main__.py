"""The command `tokenrecords`, also as `python -m tokenrecords`."""

import io
import sys
import warnings

NO_EXTRA = 3  # the exit status of a missing extra; 1 says that something was found, 2 that nothing could be done


def main() -> None:
    """Run the command, or say which extra it needs."""
    try:
        from tokenrecords.cli.app import app  # noqa: PLC0415 - typer and rich are an extra
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.stderr.write("tokenrecords: the command needs an extra: pip install 'tokenrecords[cli]'\n")
        sys.exit(NO_EXTRA)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows question marks, not a traceback
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    app()


if __name__ == "__main__":
    main()
