"""The command `tokenrecords`, also as `python -m tokenrecords`."""

import sys


def main() -> None:
    """Run the command, or say which extra it needs."""
    try:
        from tokenrecords.cli import app  # noqa: PLC0415 - typer and rich are an extra
    except ModuleNotFoundError as error:
        if error.name not in {"typer", "rich"}:
            raise
        sys.exit("tokenrecords: the command needs an extra: pip install 'tokenrecords[cli]'")
    app()


if __name__ == "__main__":
    main()
