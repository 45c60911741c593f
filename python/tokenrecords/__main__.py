"""The command `tokenrecords`, also as `python -m tokenrecords`."""

import io
import sys
import warnings

NO_EXTRA = 3  # the exit status of a missing extra; 1 says that something was found, 2 that nothing could be done
# Which extra brings a module.
_EXTRAS = {
    "typer": "cli",
    "rich": "cli",
    "pyarrow": "arrow",
    "fsspec": "fsspec",
    "aiohttp": "gateway",
    "httptools": "gateway",
    "multidict": "gateway",
    "prometheus_client": "gateway",
    "jinja2": "report",
}


def main() -> None:
    """Run the command, or say which extra it needs."""
    try:
        _run()
    except ImportError as error:
        extra = _EXTRAS.get((error.name or "").partition(".")[0])
        if extra is not None:
            needed = f"the command needs an extra: pip install 'tokenrecords[{extra}]'"
        elif error.name is None:  # of fsspec, which says what a file system needs
            needed = str(error)
        else:
            raise
        sys.stderr.write(f"tokenrecords: {needed}\n")
        sys.exit(NO_EXTRA)


def _run() -> None:
    from tokenrecords.cli.app import app  # noqa: PLC0415 - typer and rich are an extra

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without UTF-8 shows question marks, not a traceback
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    app()


if __name__ == "__main__":
    main()
