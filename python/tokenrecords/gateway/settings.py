"""What a gateway is told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from tokenrecords.engines.requests import ASKS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LOCAL: Final = frozenset({"127.0.0.1", "::1", "localhost"})


@dataclass(frozen=True)
class Settings:
    """The settings of a gateway.

    Attributes:
        engines: The roots of the engines, with or without `/v1`.
        out: The directory of the records.
        host: Where it listens. Another host than this one needs `key` and `admin_key`.
        port: The port; 0 for any that is free.
        key: What agents must say as their API key; None lets everybody in.
        admin_key: What whoever reads sessions, pauses or changes weights must say as theirs.
        engine_key: What the engines are told in place of the agent's key.
        engine: The kind of the engines, of those that `engines.requests` knows.
        enforced: Members that each generating request gets, whatever the agent says.
        require_session: True to refuse generating calls without a session; else they pass, and are counted.
        hash_ids: True to take any session id: the files are named after its hash.
        keep_messages: True to write requests and answers beside the records.
        delta: True to store what a prompt adds to its parent.
        durable: "fsync" survives a power cut, "write" a kill.
        on_loss: What the agent gets where its call could not be recorded: an error ("fail"), or its answer ("pass").
        keep_partial: True to record what an agent that left had been sent.
        max_body: The longest body of a request, in bytes.
        grace: Seconds that open calls have when the gateway is stopped.
        timeout: Seconds that a call may take in all; None for any number.
        retries: How often a call is sent again that no engine has answered yet.
        health_interval: Seconds between two looks at an engine that failed.
    """

    engines: tuple[str, ...]
    out: Path
    host: str = "127.0.0.1"
    port: int = 9090
    key: str | None = None
    admin_key: str | None = None
    engine_key: str | None = None
    engine: str = "vllm"
    enforced: Mapping[str, Any] = field(default_factory=dict)
    require_session: bool = False
    hash_ids: bool = False
    keep_messages: bool = False
    delta: bool = True
    durable: Literal["fsync", "write"] = "fsync"
    on_loss: Literal["fail", "pass"] = "fail"
    keep_partial: bool = False
    max_body: int = 1 << 28
    grace: float = 30.0
    timeout: float | None = None
    retries: int = 2
    health_interval: float = 2.0

    def __post_init__(self) -> None:
        if not self.engines:
            raise ValueError("engines is empty: the URL of one is needed")
        for url in self.engines:
            if not _is_root(url):
                raise ValueError(f"the engine {url!r} is not a URL: one like http://localhost:8000/v1 is needed")
            if "@" in urlsplit(url).netloc:  # and not the URL, which has a key
                raise ValueError("the URL of an engine says who calls it: the engine key is needed for that")
        if self.engine not in ASKS:
            raise ValueError(f"the kind of engine is {self.engine!r}: one of {', '.join(ASKS)} is needed")
        if self.durable not in ("fsync", "write"):
            raise ValueError(f"durable is {self.durable!r}: 'fsync' or 'write' is needed")
        if self.on_loss not in ("fail", "pass"):
            raise ValueError(f"on_loss is {self.on_loss!r}: 'fail' or 'pass' is needed")
        if self.host not in LOCAL and not (self.key and self.admin_key):
            raise ValueError(f"host is {self.host!r}: a key and an admin key are needed where others can reach it")

    def roots(self) -> list[str]:
        """The engines' roots, without `/v1`."""
        return [url.rstrip("/").removesuffix("/v1").rstrip("/") for url in self.engines]


def _is_root(url: str) -> bool:
    """True for a URL to which a path can be added."""
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and has_port
    return is_whole and not (parts.query or parts.fragment or any(map(str.isspace, url)))
