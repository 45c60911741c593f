"""What stands beside the records of a rollout: which calls were begun, which were lost, and what became of the rollout.

A server notes a call before it sends it to the engine, and writes its record when the answer is there: a call that was
noted and has no record was lost, or is still open. Side files are read, never written, and before the records: then a
call that is recorded meanwhile is not taken for a lost one.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pydantic_core import from_json

from tokenrecords.entry.model import origin
from tokenrecords.files.names import PathLike, stem
from tokenrecords.files.remote import AnyPath, RemotePath, as_path

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from tokenrecords.entry.model import TokenEntry


class Layout(NamedTuple):
    """How the side files of a rollout are named: what follows its stem.

    Attributes:
        begun: The calls that were begun: an id a line. Of the gateway, a further line of a call, its id, a tab and why,
            takes it back: the engine answered with an error, so that nothing was generated.
        lost: The calls that are known to be lost: an id a line, empty where nobody knows it; behind a tab, why.
        state: What became of the rollout: a JSON object with `frozen`, `incomplete`, `retired`, and `entry_digests` of
            the calls that were recorded. Empty where the layout has none.
    """

    begun: str
    lost: str
    state: str = ""


# NeMo Gym 0.7.0, `TokenCaptureStore`; and the gateway's.
GYM: Final = Layout(".tokens.intents", ".tokens.incomplete", ".tokens.state.json")
GATEWAY: Final = Layout(".intents", ".lost")
LAYOUTS: Final = (GYM, GATEWAY)  # a longer suffix comes first
_SUFFIXES: Final = tuple(suffix for layout in LAYOUTS for suffix in layout if suffix)


class Note(NamedTuple):
    """A line of a side file."""

    path: str
    line: int
    why: str


@dataclass
class SideFiles:
    """What the side files of one rollout say.

    Attributes:
        begun: The calls that were begun, with the line that says so first.
        once: The calls that were recorded, as the state says.
        marks: The lines and states that say that the rollout lost something, by call; the call is empty where nobody
            knows it.
        is_frozen: True where no further call is taken.
        retired: The file that says that the records were deleted, once the rollout was rebuilt from them.
    """

    begun: dict[str, Note] = field(default_factory=dict)
    once: dict[str, Note] = field(default_factory=dict)
    marks: dict[str, Note] = field(default_factory=dict)
    is_frozen: bool = False
    retired: str | None = None

    def lost(self, recorded: Collection[str]) -> list[str]:
        """The calls without a record, as far as their ids are known.

        Args:
            recorded: The ids of the rollout's records; several choices of a call are recorded as `<call>#<index>`.
        """
        known = {*recorded, *(call.rpartition("#")[0] for call in recorded)}
        return [call for call in dict.fromkeys((*self.begun, *self.once, *self.marks)) if call and call not in known]

    def is_incomplete(self, recorded: Collection[str]) -> bool:
        """True where a call has no record, or was marked as lost."""
        return bool(self.marks or self.lost(recorded))


class Beside(NamedTuple):
    """A rollout that has side files.

    Attributes:
        rollout_ids: What its records say; where there are none, what the files are named after.
        recorded: The ids of its records.
        side: The side files.
    """

    rollout_ids: set[str]
    recorded: set[str]
    side: SideFiles

    @property
    def is_incomplete(self) -> bool:
        """True where a call of it has no record, or was marked as lost."""
        return self.side.is_incomplete(self.recorded)


def beside(sides: Mapping[str, SideFiles], entries: Iterable[TokenEntry]) -> list[Beside]:
    """The rollouts that have side files.

    Args:
        sides: The side files, by stem, read before the records.
        entries: The records, as they were read from files.
    """
    found = {of: Beside(set(), set(), side) for of, side in sides.items()}
    for entry in entries if found else ():
        path, _ = origin(entry) or ("", 0)
        rollout = found.get(stem(path) or "")
        if rollout is not None:
            rollout.rollout_ids.add(entry.rollout_id)
            rollout.recorded.add(entry.model_call_id)
    for of, each in found.items():
        if not each.rollout_ids:
            each.rollout_ids.add(as_path(of).name)
    return list(found.values())


def read_side_files(paths: Iterable[PathLike]) -> dict[str, SideFiles]:
    """The side files of the rollouts whose records these are, by stem; the arguments of `side_names`."""
    return read_named(side_names(paths))


def side_names(paths: Iterable[PathLike]) -> dict[str, set[str]]:
    """The names of the side files of the rollouts whose records these are: their suffixes, by stem.

    Args:
        paths: Files of records, whose side files need not be there; and directories: of these every rollout that has
            side files, with records or without.
    """
    names: dict[str, set[str]] = defaultdict(set)
    listed: dict[AnyPath, set[str]] = {}
    for path in paths:
        for of, suffix in _named(as_path(path), listed):
            names[of].add(suffix)
    return dict(names)


def read_named(names: Mapping[str, Collection[str]]) -> dict[str, SideFiles]:
    """The side files of these names, by stem, as far as they are there."""
    read = {of: _read(of, suffixes) for of, suffixes in names.items()}
    return {of: side for of, side in read.items() if side is not None}


def still_there(sides: Mapping[str, SideFiles]) -> dict[str, SideFiles]:
    """The side files of rollouts without a record, but of one that was retired or deleted meanwhile what stands now."""
    found: dict[str, SideFiles] = {}
    for of, side in sides.items():
        now = _read(of)
        if now is not None:
            found[of] = side if now.retired is None else now
    return found


def retired(directory: AnyPath) -> int:
    """The number of rollouts in a directory whose records were deleted, once they were rebuilt from them."""
    return sum(side.retired is not None for side in read_side_files([directory]).values())


def _named(path: AnyPath, listed: dict[AnyPath, set[str]]) -> Iterator[tuple[str, str]]:
    """The side files of a directory, and those that a file of records may have, as stem and suffix.

    On another file system, where each question is a journey, those that it has; its directory is listed once.
    """
    if path.is_dir():
        for name in sorted(file.name for file in path.iterdir()):
            suffix = next(filter(name.endswith, _SUFFIXES), None)
            if suffix is not None:
                yield str(path / name.removesuffix(suffix)), suffix
        return
    of = stem(path)
    if of is None:
        return
    if isinstance(path, RemotePath):
        if path.parent not in listed:
            listed[path.parent] = {file.name for file in path.parent.iterdir()}
        there = listed[path.parent]
        yield from ((of, suffix) for suffix in _SUFFIXES if as_path(of + suffix).name in there)
    else:
        yield from ((of, suffix) for suffix in _SUFFIXES)


def _read(of: str, suffixes: Collection[str] = _SUFFIXES) -> SideFiles | None:
    """The side files of a stem, None where there are none."""
    side, is_there = SideFiles(), False
    for layout in LAYOUTS:
        for suffix, read in zip(layout, (_read_begun, _read_lost, _read_state), strict=True):
            data = _bytes(of + suffix) if suffix in suffixes else None
            if data is not None:
                is_there = True
                read(side, of + suffix, data)
    return side if is_there else None


def _bytes(path: str) -> bytes | None:
    try:
        return as_path(path).read_bytes()
    except FileNotFoundError:  # it may go at any time
        return None


def _lines(data: bytes) -> Iterator[tuple[int, str]]:
    return enumerate(data.decode("utf-8", "replace").split("\n"), 1)


def _read_begun(side: SideFiles, path: str, data: bytes) -> None:
    may_take_back = not path.endswith(GYM.begun)
    for number, line in _lines(data):
        call, tab, _ = line.partition("\t")
        if tab and may_take_back:
            side.begun.pop(call.strip(), None)
        elif line.strip():
            side.begun.setdefault(line.strip(), Note(path, number, "it was begun"))


def _read_lost(side: SideFiles, path: str, data: bytes) -> None:
    text = data.removesuffix(b"\n")
    for number, line in _lines(text):
        call, _, why = (part.strip() for part in line.partition("\t"))
        said = f"{'it' if call else 'a call without a name'} was marked as lost{f' ({why})' if why else ''}"
        side.marks.setdefault(call, Note(path, number, said))


def _read_state(side: SideFiles, path: str, data: bytes) -> None:
    try:
        state: Any = from_json(data)
    except ValueError:
        state = None
    if not isinstance(state, dict):
        side.marks.setdefault("", Note(path, 1, "the state of the rollout can't be read"))
        return
    side.is_frozen = state.get("frozen") is True
    side.retired = path if state.get("retired") is True else None
    if state.get("incomplete") and not side.marks:
        side.marks.setdefault("", Note(path, 1, "the rollout was marked as incomplete"))
    recorded = state.get("entry_digests")
    side.once = dict.fromkeys(recorded if isinstance(recorded, dict) else (), Note(path, 1, "it was recorded once"))
