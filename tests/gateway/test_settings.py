"""What a gateway may be told."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from tokenrecords.gateway import Settings


def made(*engines: str, **settings: Any) -> Settings:
    return Settings(engines=engines or ("http://e",), out=Path("out"), **settings)


@pytest.mark.parametrize(
    ("url", "root"),
    [
        ("http://localhost:8000/v1", "http://localhost:8000"),
        ("http://localhost:8000/v1/", "http://localhost:8000"),
        ("http://localhost:8000", "http://localhost:8000"),
        ("https://e/openai/v1", "https://e/openai"),
        ("http://[::1]:8000/v1", "http://[::1]:8000"),
        ("http://e//v1/", "http://e"),
        ("http://e/a@b/v1", "http://e/a@b"),
    ],
)
def test_an_engine_has_a_root(url: str, root: str) -> None:
    assert made(url).roots() == [root]


@pytest.mark.parametrize(
    "url",
    [
        *("", "e:8000", "ftp://e", "http://", "http://:80", "http://e:0", "http://e:99999", "http://e/v1?a"),
        *("http://e/v1#a", "http://e /v1", " http://e", "http://e\n", "http://[::1"),
    ],
)
def test_what_no_path_can_be_added_to_is_no_root(url: str) -> None:
    with pytest.raises(ValueError, match="is not a URL: one like http://localhost:8000/v1 is needed"):
        made(url)


def test_the_key_of_an_engine_is_not_in_its_url() -> None:
    """Records name the engine by its URL."""
    with pytest.raises(ValueError, match="the engine key is needed") as refused:
        made("http://user:secret@e/v1")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("keys", [{}, {"key": "a"}, {"admin_key": "a"}, {"key": "", "admin_key": "a"}])
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "10.0.0.1"])
def test_others_need_keys(host: str, keys: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="a key and an admin key are needed"):
        made(host=host, **keys)
    assert made(host=host, key="a", admin_key="b").host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_host_needs_no_keys(host: str) -> None:
    assert made(host=host).host == host


def test_settings_stay_as_they_were_checked(tmp_path: Path) -> None:
    settings = Settings(engines=("http://e",), out=tmp_path)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.out = tmp_path / "other"  # type: ignore[misc]
