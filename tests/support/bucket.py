"""An object store as fsspec has them: no directories, uploads in parts, listings that are kept."""

from __future__ import annotations

from typing import Any, ClassVar

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem


class Bucket(AbstractFileSystem):
    """What is uploaded appears when it is committed.

    Attributes:
        objects: What there is, by key.
        open_uploads: Uploads that were neither committed nor aborted.
        fails: What the next upload raises, by "part" or "commit".
    """

    protocol = "bucket"
    objects: ClassVar[dict[str, bytes]] = {}
    open_uploads: ClassVar[set[int]] = set()
    fails: ClassVar[dict[str, BaseException]] = {}

    @classmethod
    def clear(cls) -> None:
        for held in (cls.objects, cls.open_uploads, cls.fails):
            held.clear()
        cls.clear_instance_cache()

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        if path not in self.dircache:
            self.dircache[path] = self._listed(path)
        found = self.dircache[path]
        return found if detail else [each["name"] for each in found]

    def _listed(self, path: str) -> list[dict[str, Any]]:
        if path in self.objects:
            return [_file(path, self.objects[path])]
        above = f"{path}/" if path else ""
        found = {}
        for key, data in self.objects.items():
            if key.startswith(above):
                name, slash, _ = key.removeprefix(above).partition("/")
                directory = {"name": above + name, "size": 0, "type": "directory"}
                found[name] = directory if slash else _file(above + name, data)
        if not found:
            raise FileNotFoundError(path)
        return list(found.values())

    def invalidate_cache(self, path: str | None = None) -> None:
        for kept in list(self.dircache):
            if path is None or kept == path or path.startswith(f"{kept}/"):
                del self.dircache[kept]

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        self.objects[path2] = self.objects[path1]

    def _rm(self, path: str) -> None:
        del self.objects[path]

    def _open(self, path: str, mode: str = "rb", autocommit: bool = True, **_: Any) -> AbstractBufferedFile:
        return _Object(self, path, mode, block_size=64, autocommit=autocommit)


class Hub(Bucket):
    """A store without transactions, as the Hugging Face Hub is: a file is there once it is closed."""

    protocol = "hub"

    @property
    def transaction(self) -> Any:
        raise NotImplementedError


def _file(path: str, data: bytes) -> dict[str, Any]:
    return {"name": path, "size": len(data), "type": "file"}


class _Object(AbstractBufferedFile):
    def _fetch_range(self, start: int, end: int) -> bytes:
        return self.fs.objects[self.path][start:end]

    def _initiate_upload(self) -> None:
        self.parts: list[bytes] = []
        self.fs.open_uploads.add(id(self))

    def _upload_chunk(self, final: bool = False) -> bool:
        self._fail("part")
        self.parts.append(self.buffer.getvalue())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        self._fail("commit")
        self.fs.objects[self.path] = b"".join(self.parts)
        self.fs.open_uploads.discard(id(self))

    def discard(self) -> None:
        self.fs.open_uploads.discard(id(self))

    def _fail(self, what: str) -> None:
        if what in self.fs.fails:
            raise self.fs.fails.pop(what)
