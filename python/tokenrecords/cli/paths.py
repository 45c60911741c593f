"""What the commands take as a path: one of this machine, or the URL of another file system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tokenrecords.files.remote import as_path

if TYPE_CHECKING:
    from tokenrecords.files.remote import AnyPath


def existing(name: str) -> AnyPath:
    """A file or directory that is there, or a pattern of files of another file system.

    Raises:
        BadParameter: It is not there, or can't be read.
    """
    path = as_path(name)
    if isinstance(path, Path):
        if not path.exists():
            raise typer.BadParameter(f"{name!r} does not exist.")
        if not os.access(path, os.R_OK):
            raise typer.BadParameter(f"{name!r} is not readable.")
    elif not path.is_dir():
        try:
            path.matches()
        except FileNotFoundError:
            raise typer.BadParameter(f"{name!r} does not exist.") from None
    return path


def existing_file(name: str) -> AnyPath:
    """A file that is there.

    Raises:
        BadParameter: It is not there, can't be read, or is a directory.
    """
    path = existing(name)
    if path.is_dir():
        raise typer.BadParameter(f"{name!r} is a directory.")
    return path


def directory(name: str) -> AnyPath:
    """A directory, or what may become one.

    Raises:
        BadParameter: It is a file.
    """
    path = as_path(name)
    if path.is_file():
        raise typer.BadParameter(f"{name!r} is a file.")
    return path


def local_directory(name: str) -> Path:
    """A directory of this machine, or what may become one.

    Raises:
        BadParameter: It is a file, or of another file system.
    """
    path = directory(name)
    if not isinstance(path, Path):
        raise typer.BadParameter(f"{name!r} is not on this machine: what is written there must survive a kill.")
    return path
