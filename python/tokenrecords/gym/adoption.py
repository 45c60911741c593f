"""From now on this process runs on ours: the names of NeMo Gym's own modules mean this package's objects."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import logging
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tokenrecords.gym.contract import PACKAGE, RECORDS, TARGETS, Target, UnknownReleaseError
from tokenrecords.gym.finder import Finder
from tokenrecords.gym.rebinding import Replacement, replace, replacements, restore

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

_LOG = logging.getLogger("tokenrecords.gym")
_LOCK = threading.RLock()


@dataclass(frozen=True)
class Installed:
    """What runs on ours in this process.

    Attributes:
        release: The release of NeMo Gym; None where it is unknown by its files' hashes, and known by what they declare.
        directory: Where it is installed; None where it was refused.
        modules: The modules whose names are replaced, imported or not.
        rebound: The names that were replaced in modules that are imported, each with its module.
        refused: Why nothing is replaced, in words; empty where something is.
    """

    release: str | None = None
    directory: Path | None = None
    modules: tuple[str, ...] = ()
    rebound: tuple[str, ...] = ()
    refused: str = ""

    def __str__(self) -> str:
        if self.refused:
            return f"NeMo Gym runs on its own code: {self.refused}"
        what = f"NeMo Gym {self.release or 'of an unknown release with the known declarations'} in {self.directory}"
        return f"{what} runs on tokenrecords: {', '.join(self.modules)}; {len(self.rebound)} names in imported modules"


@dataclass
class _State:
    """What this process replaced."""

    installed: Installed | None = None
    finder: Finder | None = None
    lineage_store: bool = False
    replaced: list[Replacement] = field(default_factory=list)


_STATE = _State()


def install(*, strict: bool = True, require: bool = False, lineage_store: bool = False) -> Installed:
    """Let NeMo Gym in this process run on this package; a second call changes nothing.

    Modules that are imported later are replaced as they are imported. In modules of `nemo_gym` that are imported
    already the names are rebound; no other module is touched. Records that exist already stay what they are, so install
    before the first call is served.

    Args:
        strict: False leaves an unknown release alone, with a warning in the log.
        require: End the process where the release is unknown.
        lineage_store: Let its `FileLineageStore` be the one of this package, too, as the launcher does.

    Returns:
        What was replaced; it is logged in one line, too.

    Raises:
        UnknownReleaseError: The installed NeMo Gym differs from those that are known, or there is none; nothing was
            changed.
        SystemExit: The same, with `require`.
    """
    for name in TARGETS.keys() & sys.modules.keys():
        importlib.import_module(name)  # waits for another thread that is at it
    with _LOCK:
        if _STATE.installed is not None:
            return _STATE.installed
        try:
            directory, targets, release = _checked()
        except UnknownReleaseError as error:
            return _refuse(error, strict=strict, require=require)
        _STATE.lineage_store = lineage_store
        _STATE.finder = Finder(TARGETS, _checks(strict=strict, require=require), _replace)
        sys.meta_path.insert(0, _STATE.finder)
        _STATE.installed = Installed(release, directory, tuple(target.module for target in targets))
        for target in targets:
            if target.module in sys.modules:
                _replace(sys.modules[target.module])
        _LOG.info("%s", _STATE.installed)
        return _STATE.installed


def uninstall() -> None:
    """Give NeMo Gym its own objects back, in every module of its that is imported. Records stay what they are."""
    with _LOCK:
        if _STATE.finder in sys.meta_path:
            sys.meta_path.remove(_STATE.finder)
        restore(_STATE.replaced)
        _STATE.installed, _STATE.finder, _STATE.replaced = None, None, []


def status() -> Installed | None:
    """What `install` replaced in this process; None where it replaced nothing."""
    return _STATE.installed


def _checked() -> tuple[Path, list[Target], str | None]:
    """Where NeMo Gym is, the targets that it has, and its release."""
    directory = _directory()
    targets, releases = [], set()
    for target in TARGETS.values():
        path = _file(target, directory)
        if target is not RECORDS and not path.exists():
            continue
        try:
            releases.add(target.release(path))
        except UnknownReleaseError:
            if target.needed:
                raise
        else:
            targets.append(target)
    if len(releases - {None}) > 1:
        mixed = " and ".join(sorted(filter(None, releases)))
        raise UnknownReleaseError(f"{directory} holds files of several releases: {mixed}", name=PACKAGE)
    return directory, targets, releases.pop() if len(releases) == 1 else None


def _directory() -> Path:
    try:
        spec = importlib.util.find_spec(PACKAGE)
    except ValueError:  # a module without a spec
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise UnknownReleaseError(f"{PACKAGE} is not installed: a package of that name is needed", name=PACKAGE)
    places = [Path(place) for place in spec.submodule_search_locations]
    return next((place for place in places if RECORDS.path(place).exists()), places[0])


def _file(target: Target, directory: Path) -> Path:
    """The file that a module was imported from, or will be."""
    imported = getattr(sys.modules.get(target.module), "__file__", None)
    return target.path(directory) if imported is None else Path(imported)


def _checks(*, strict: bool, require: bool) -> Callable[[str, str | None], bool]:
    """What the finder asks before a module runs: that it comes from the file that was checked, or one as good."""

    def is_known(name: str, origin: str | None) -> bool:
        try:
            TARGETS[name].release(Path(origin or ""))
        except UnknownReleaseError as error:
            if TARGETS[name].needed:
                _refuse(error, strict=strict, require=require)
            return False
        return True

    return is_known


def _refuse(error: UnknownReleaseError, *, strict: bool, require: bool) -> Installed:
    if require:
        raise SystemExit(f"tokenrecords.gym: {error}") from error
    if strict:
        raise error
    refused = Installed(refused=str(error))
    _LOG.warning("%s", refused)
    return refused


def _replace(module: ModuleType) -> None:
    """Replace the names of a target's module, here and in whatever module of the package has them from there."""
    with _LOCK:
        if _STATE.installed is None:  # it was uninstalled while this module was imported
            return
        target = TARGETS[module.__name__]
        unasked = frozenset[str]() if _STATE.lineage_store else target.asked
        found = replacements(module, {name: target.replaced[name] for name in target.replaced.keys() - unasked})
        _STATE.replaced += found
        rebound = tuple(sorted({*_STATE.installed.rebound, *replace(found)}))
        _STATE.installed = dataclasses.replace(_STATE.installed, rebound=rebound)
