"""Clients of a gateway: sessions read back, closed and deleted; weights and pauses."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from tokenrecords.files.jsonl import read_jsonl

if TYPE_CHECKING:
    from tokenrecords.entry.model import TokenEntry


class GatewayError(RuntimeError):
    """What a gateway answered with an error.

    Attributes:
        status: The status.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Client:
    """A gateway's sessions.

    Args:
        url: The gateway, `http://localhost:9090`.
        admin_key: Its admin key, if it has one.
        timeout: Seconds for each request.
    """

    def __init__(self, url: str, *, admin_key: str | None = None, timeout: float = 60.0) -> None:
        self._url, self._key, self._timeout = url.rstrip("/"), admin_key, timeout

    def base_url(self, session: str) -> str:
        """The base URL of an agent's client, for OpenAI's."""
        return f"{self._url}{_path(session)}/v1"

    def sessions(self) -> list[dict[str, Any]]:
        """What is known of each session: `session`, `calls`, `lost`, `open`, `complete`, `closed`."""
        return self._json("GET", "/sessions")["sessions"]  # type: ignore[no-any-return]

    def session(self, session: str) -> dict[str, Any]:
        """What is known of one.

        Raises:
            GatewayError: It is not there.
        """
        return self._json("GET", _path(session))  # type: ignore[no-any-return]

    def records(self, session: str, *, after: str | None = None) -> list[TokenEntry]:
        """Its records, or those behind a call."""
        query = {} if after is None else {"after": after}
        return read_jsonl(self._request("GET", f"{_path(session)}/records", query))

    def chains(self, session: str, *, terminal_call: str | None = None) -> dict[str, Any]:
        """Its chains, with `trainable` and the `reasons` against it."""
        query = {} if terminal_call is None else {"terminal_call": terminal_call}
        return json.loads(self._request("GET", f"{_path(session)}/chains", query))  # type: ignore[no-any-return]

    def close(self, session: str, **said: Any) -> dict[str, Any]:
        """Say how it ended: `terminal_call`, `reward`, and whatever else."""
        return self._json("POST", f"{_path(session)}/close", said)  # type: ignore[no-any-return]

    def delete(self, session: str) -> None:
        """Delete it and its files."""
        self._request("DELETE", _path(session))

    def set_weight_version(self, version: str | int) -> None:
        """Say what records of further calls name as their weights."""
        self._json("PUT", "/weight-version", {"weight_version": version})

    def pause(self) -> int:
        """Refuse further calls; how many are still open."""
        return self._json("POST", "/pause")["open"]  # type: ignore[no-any-return]

    def resume(self) -> None:
        """Take calls again."""
        self._json("POST", "/resume")

    def _json(self, method: str, path: str, said: Any = None) -> Any:
        return json.loads(self._request(method, path, {}, None if said is None else json.dumps(said).encode()))

    def _request(self, method: str, path: str, query: dict[str, str] | None = None, body: bytes | None = None) -> bytes:
        url = self._url + path + (f"?{urlencode(query)}" if query else "")
        headers = {"content-type": "application/json"}
        if self._key is not None:
            headers["authorization"] = f"Bearer {self._key}"
        request = Request(url, data=body, headers=headers, method=method)  # noqa: S310 - the caller's own URL
        try:
            with urlopen(request, timeout=self._timeout) as answer:  # noqa: S310
                return answer.read()  # type: ignore[no-any-return]
        except HTTPError as refused:
            with refused:
                text = refused.read()
            raise GatewayError(refused.code, _message(text)) from None


class AsyncClient:
    """The methods of `Client` as coroutines; each waits in a thread."""

    def __init__(self, url: str, *, admin_key: str | None = None, timeout: float = 60.0) -> None:
        self._client = Client(url, admin_key=admin_key, timeout=timeout)

    def base_url(self, session: str) -> str:
        """As `Client.base_url`."""
        return self._client.base_url(session)

    async def sessions(self) -> list[dict[str, Any]]:
        """As `Client.sessions`."""
        return await asyncio.to_thread(self._client.sessions)

    async def session(self, session: str) -> dict[str, Any]:
        """As `Client.session`."""
        return await asyncio.to_thread(self._client.session, session)

    async def records(self, session: str, *, after: str | None = None) -> list[TokenEntry]:
        """As `Client.records`."""
        return await asyncio.to_thread(self._client.records, session, after=after)

    async def chains(self, session: str, *, terminal_call: str | None = None) -> dict[str, Any]:
        """As `Client.chains`."""
        return await asyncio.to_thread(self._client.chains, session, terminal_call=terminal_call)

    async def close(self, session: str, **said: Any) -> dict[str, Any]:
        """As `Client.close`."""
        return await asyncio.to_thread(self._client.close, session, **said)

    async def delete(self, session: str) -> None:
        """As `Client.delete`."""
        await asyncio.to_thread(self._client.delete, session)

    async def set_weight_version(self, version: str | int) -> None:
        """As `Client.set_weight_version`."""
        await asyncio.to_thread(self._client.set_weight_version, version)

    async def pause(self) -> int:
        """As `Client.pause`."""
        return await asyncio.to_thread(self._client.pause)

    async def resume(self) -> None:
        """As `Client.resume`."""
        await asyncio.to_thread(self._client.resume)


def _path(session: str) -> str:
    return f"/sessions/{quote(session, safe='')}"


def _message(text: bytes) -> str:
    try:
        return str(json.loads(text)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return text.decode("utf-8", "replace")[:500]
