"""Starts a command whose Python processes run NeMo Gym on this package: `python -m tokenrecords.gym -- <command>`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

SITE = Path(__file__).with_name("site")


def environment(*, require: bool) -> dict[str, str]:
    """The environment that each Python of the command inherits."""
    places = [str(SITE), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(places), "TOKENRECORDS_GYM": "require" if require else "1"}


def main() -> None:
    """Become the command."""
    parser = argparse.ArgumentParser(prog="python -m tokenrecords.gym", description=__doc__)
    parser.add_argument(
        "--require",
        action="store_true",
        help="end a process that can't run NeMo Gym on this package, instead of a warning",
    )
    parser.add_argument("command", nargs="+", help="the command and its arguments, after --")
    arguments = parser.parse_args()
    command = arguments.command
    try:
        os.execvpe(command[0], command, environment(require=arguments.require))  # noqa: S606 - it is what the user asked
    except OSError as error:
        parser.exit(127, f"{command[0]} can't be started: {error.strerror}\n")


if __name__ == "__main__":
    main()
