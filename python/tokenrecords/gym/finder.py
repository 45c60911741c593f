"""The finder of modules that are imported later: each is loaded as ever, then handed over."""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType


class Finder(MetaPathFinder):
    """Finds what the other finders find, of some modules.

    Args:
        names: The modules' full names.
        wanted: Says whether such a module is handed over, by its name and file; what it raises ends the import.
        after: Is given the module once it was run.
    """

    def __init__(
        self, names: Container[str], wanted: Callable[[str, str | None], bool], after: Callable[[ModuleType], object]
    ) -> None:
        self._names = names
        self._wanted = wanted
        self._after = after

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec of one of the modules, with a loader that hands the module over; None for any other."""
        if fullname not in self._names:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and self._wanted(fullname, spec.origin):
                    spec.loader = _Loader(spec.loader, self._after)  # type: ignore[assignment]
                return spec
        return None


class _Loader:
    """A loader that is another one but for what follows the run."""

    def __init__(self, loader: Any, after: Callable[[ModuleType], object]) -> None:
        self._loader = loader
        self._after = after

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def exec_module(self, module: ModuleType) -> None:
        for holder, name in ((module.__spec__, "loader"), (module, "__loader__")):
            setattr(holder, name, self._loader)
        self._loader.exec_module(module)
        self._after(module)
