"""`install` replaces names before and after they are imported, changes nothing where it refuses, and is undone."""

import dataclasses
import hashlib
import importlib
import logging
import os
import subprocess
import sys
import threading
import types

import pytest
import tokenrecords
from support.fake_gym import CAPTURE, NAMES, forget_package, write_package
from tokenrecords import gym
from tokenrecords.gym import staging
from tokenrecords.gym.contract import DIGEST, RECORDS

RECORDS_FILE = "nemo_gym/token_id_capture/records.py"
OURS = dict(
    zip(
        NAMES,
        (tokenrecords.TokenEntry, tokenrecords.compute_digest, staging.encode_token_ids, staging.hash_token_ids),
        strict=True,
    )
)


@pytest.fixture(autouse=True)
def alone():
    """No test sees another's package, nor what another installed."""
    yield
    gym.uninstall()
    forget_package()


@pytest.fixture
def package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(write_package(tmp_path))
    return tmp_path


def consumer():
    return importlib.import_module(f"{CAPTURE}.consumer")


def held(module):
    return {name: getattr(module, name) for name in NAMES}


def test_modules_that_are_imported_later(package):
    installed = gym.install()
    assert (installed.release, installed.directory, installed.rebound) == (None, package / "nemo_gym", ())
    assert installed.modules == (RECORDS.module, DIGEST.module)
    assert held(consumer()) == OURS
    records = sys.modules[RECORDS.module]
    assert {name: getattr(records, name) for name in RECORDS.replaced} == RECORDS.replaced
    assert records.__file__ == str(package / RECORDS_FILE)
    assert records.__loader__ is records.__spec__.loader
    assert type(records.__loader__).__module__.startswith("_frozen_importlib")
    assert len(gym.status().rebound) == len(RECORDS.replaced) + len(DIGEST.replaced)


@pytest.mark.usefixtures("package")
def test_modules_that_are_imported_already():
    module = consumer()
    other = importlib.util.module_from_spec(importlib.machinery.ModuleSpec("nemo_gymnasium", None))
    other.Entry = theirs = module.Entry
    sys.modules["nemo_gymnasium"] = other
    try:
        installed = gym.install()
    finally:
        del sys.modules["nemo_gymnasium"]
    assert held(module) == OURS
    assert {f"{CAPTURE}.consumer.{name}" for name in NAMES} <= set(installed.rebound)
    assert len(installed.rebound) == len(NAMES) + len(RECORDS.replaced) + len(DIGEST.replaced)
    assert other.Entry is theirs
    assert gym.status() == installed


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.usefixtures("package")
def test_uninstall_gives_everything_back(late):
    finders = list(sys.meta_path)
    module = consumer() if late else None
    gym.install()
    module = module or consumer()
    gym.uninstall()
    assert sys.meta_path == finders
    assert gym.status() is None
    for name, value in held(module).items():
        home = DIGEST.module if name in DIGEST.replaced else RECORDS.module
        assert value is not OURS[name]
        assert value.__module__ == home
    gym.install()
    assert held(module) == OURS


@pytest.mark.usefixtures("package")
def test_a_second_install_changes_nothing():
    first = gym.install()
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.release = "9.9"
    finders = list(sys.meta_path)
    assert gym.install() is first
    assert sys.meta_path == finders
    gym.uninstall()
    gym.uninstall()


@pytest.mark.usefixtures("package")
def test_many_threads_install_once():
    count = len(sys.meta_path)
    results = []
    threads = [threading.Thread(target=lambda: results.append(gym.install())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, results))) == 1
    assert len(sys.meta_path) == count + 1
    assert held(consumer()) == OURS


def test_one_line_of_the_log_says_what_runs(package, caplog):
    caplog.set_level(logging.INFO, "tokenrecords.gym")
    consumer()
    gym.install()
    gym.install()
    count = len(NAMES) + len(RECORDS.replaced) + len(DIGEST.replaced)
    release = f"NeMo Gym of an unknown release with the known declarations in {package / 'nemo_gym'}"
    modules = f"{RECORDS.module}, {DIGEST.module}; {count} names in imported modules"
    assert caplog.messages == [f"{release} runs on tokenrecords: {modules}"]


def test_a_release_without_staging(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(write_package(tmp_path, digest=None))
    assert gym.install().modules == (RECORDS.module,)
    assert importlib.import_module(RECORDS.module).TokenEntry is tokenrecords.TokenEntry


def test_a_release_is_known_by_its_hash(package, monkeypatch):
    """Whatever the file declares, if its hash is that of a release."""
    path = package / RECORDS_FILE
    path.write_text("class TokenEntry: pass\n")
    releases = {hashlib.sha256(path.read_bytes()).hexdigest(): "9.9.9"}
    monkeypatch.setattr(
        "tokenrecords.gym.adoption.TARGETS", {RECORDS.module: dataclasses.replace(RECORDS, releases=releases)}
    )
    monkeypatch.setattr("tokenrecords.gym.adoption.RECORDS", RECORDS)
    assert gym.install().release == "9.9.9"
    assert str(gym.status()).startswith("NeMo Gym 9.9.9 in ")
    assert importlib.import_module(RECORDS.module).TokenEntry is tokenrecords.TokenEntry
    assert gym.status().rebound == (f"{RECORDS.module}.TokenEntry",)


CHANGES = [
    ("DIGEST_VERSION = 1", "DIGEST_VERSION = 2", "DIGEST_VERSION is `2`, not `1`"),
    ('ROOT = "root"', 'ROOT = "the root"', "ParentResolutionStatus.ROOT is `'the root'`, not `'root'`"),
    ('ROOT = "root"', 'ROOT = "root"; LOST = "lost"', "ParentResolutionStatus.LOST is unknown"),
    ("    cum_len: int | None = None\n", "", "TokenEntry.cum_len is missing"),
    ("cum_len: int | None = None", "cum_len: int = 0", "TokenEntry.cum_len is `int = 0`, not `int | None = None`"),
    (
        'extra="allow"',
        'extra="ignore"',
        "TokenEntry.model_config is `ConfigDict(extra='ignore')`, not `ConfigDict(extra='allow')`",
    ),
    (
        "def compute_digest(token_ids: list[int])",
        "def compute_digest(token_ids: list[int], version: int = 1)",
        "compute_digest is `def(token_ids: list[int], version: int=1) -> str`, not `def(token_ids: list[int]) -> str`",
    ),
    ("def compute_digest", "def merge(): ...\ndef compute_digest", "merge is unknown"),
    (
        "class TokenEntry(BaseModel)",
        "class TokenEntry(BaseModel, object)",
        "TokenEntry is `BaseModel, object`, not `BaseModel`",
    ),
]


@pytest.mark.parametrize("imported", [False, True])
@pytest.mark.parametrize(("known", "changed", "difference"), CHANGES)
def test_an_unknown_release_is_refused_in_words(package, imported, known, changed, difference):
    path = package / RECORDS_FILE
    assert known in path.read_text()
    path.write_text(path.read_text().replace(known, changed))
    module = consumer() if imported else None
    before = module and held(module)
    finders = list(sys.meta_path)
    with pytest.raises(gym.UnknownReleaseError) as caught:
        gym.install()
    assert str(caught.value) == f"{path} is of an unknown release: {difference}"
    assert (gym.status(), sys.meta_path) == (None, finders)
    assert module is None or held(module) == before


def test_private_helpers_may_come_and_go(package):
    path = package / RECORDS_FILE
    text = path.read_text().replace('UNRESOLVED_PARENT_REASON = "unresolved_parent"\n', "")
    text = text.replace("    rollout_id: str\n", "    def _own(self): ...\n    rollout_id: str\n")
    path.write_text(f"{text}\ndef _helper(): ...\n_CACHE = {{}}\n[_first] = [1]\n")
    assert gym.install().modules == (RECORDS.module, DIGEST.module)


def test_an_unknown_release_is_left_alone_if_not_strict(package, caplog):
    path = package / RECORDS_FILE
    path.write_text(path.read_text().replace("DIGEST_VERSION = 1", "DIGEST_VERSION = 2"))
    refused = gym.install(strict=False)
    reason = f"{path} is of an unknown release: DIGEST_VERSION is `2`, not `1`"
    assert refused == gym.Installed(refused=reason)
    assert caplog.messages == [f"NeMo Gym runs on its own code: {reason}"]
    assert gym.status() is None
    assert consumer().Entry is not tokenrecords.TokenEntry


def test_an_unknown_release_ends_the_process_that_requires_a_known_one(package):
    path = package / RECORDS_FILE
    path.write_text(path.read_text().replace("DIGEST_VERSION = 1", "DIGEST_VERSION = 2"))
    with pytest.raises(SystemExit) as caught:
        gym.install(strict=False, require=True)
    assert caught.value.code == f"tokenrecords.gym: {path} is of an unknown release: DIGEST_VERSION is `2`, not `1`"


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.usefixtures("package")
def test_a_module_that_comes_from_another_file_is_checked_again(tmp_path_factory, monkeypatch, strict):
    gym.install(strict=strict)
    other = write_package(tmp_path_factory.mktemp("other"), records=RECORDS.known + "DIGEST_VERSION = 2\n")
    monkeypatch.syspath_prepend(other)
    if strict:
        with pytest.raises(gym.UnknownReleaseError, match="DIGEST_VERSION is `2`, not `1`"):
            consumer()
    else:
        assert consumer().Entry.__module__ == RECORDS.module


def test_no_package_at_all(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(gym.UnknownReleaseError) as caught:
        gym.install()
    assert str(caught.value) == "nemo_gym is not installed: a package of that name is needed"


def test_a_file_that_can_not_be_read(package):
    for content in (b"def", b"\xff"):
        (package / RECORDS_FILE).write_bytes(content)
        with pytest.raises(gym.UnknownReleaseError, match="can't be read: "):
            gym.install()
    (package / RECORDS_FILE).unlink()
    with pytest.raises(gym.UnknownReleaseError, match="can't be read: "):
        gym.install()


def test_installing_imports_nothing_of_the_package(package):
    program = (
        "import sys, tokenrecords.gym as g; g.install(); print([n for n in sys.modules if n.startswith('nemo_gym')])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(package), *filter(None, sys.path)])}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert result.stdout == "[]\n"


def test_files_of_several_releases(package, monkeypatch):
    targets = {}
    for number, target in enumerate((RECORDS, DIGEST)):
        sha = hashlib.sha256(target.path(package / "nemo_gym").read_bytes()).hexdigest()
        targets[target.module] = dataclasses.replace(target, releases={sha: f"9.{number}"})
    monkeypatch.setattr("tokenrecords.gym.adoption.TARGETS", targets)
    monkeypatch.setattr("tokenrecords.gym.adoption.RECORDS", targets[RECORDS.module])
    with pytest.raises(gym.UnknownReleaseError) as caught:
        gym.install()
    assert str(caught.value) == f"{package / 'nemo_gym'} holds files of several releases: 9.0 and 9.1"


def test_a_known_file_beside_one_of_known_declarations_is_of_no_release(package, monkeypatch):
    sha = hashlib.sha256(RECORDS.path(package / "nemo_gym").read_bytes()).hexdigest()
    known = dataclasses.replace(RECORDS, releases={sha: "9.0"})
    monkeypatch.setattr("tokenrecords.gym.adoption.TARGETS", {RECORDS.module: known, DIGEST.module: DIGEST})
    monkeypatch.setattr("tokenrecords.gym.adoption.RECORDS", known)
    installed = gym.install()
    assert (installed.release, installed.modules) == (None, (RECORDS.module, DIGEST.module))


def test_a_module_that_is_being_imported_is_waited_for(package):
    entered, go = threading.Event(), threading.Event()
    path = package / RECORDS_FILE
    path.write_text(f"import waited_for\nwaited_for.entered.set()\nwaited_for.go.wait(60)\n{path.read_text()}")
    text = path.read_text().replace("from __future__ import annotations\n", "")
    path.write_text(f"from __future__ import annotations\n{text}")
    sys.modules["waited_for"] = types.SimpleNamespace(entered=entered, go=go)
    importing = threading.Thread(target=importlib.import_module, args=[RECORDS.module])
    installing = threading.Thread(target=gym.install)
    try:
        importing.start()
        assert entered.wait(60)
        installing.start()
        installing.join(0.2)  # which it should not be able to end in
        go.set()
        for thread in (importing, installing):
            thread.join()
    finally:
        go.set()
        del sys.modules["waited_for"]
    assert sys.modules[RECORDS.module].TokenEntry is tokenrecords.TokenEntry


@pytest.mark.usefixtures("package")
def test_names_of_the_package_itself_are_rebound():
    package = importlib.import_module("nemo_gym")
    package.Entry = importlib.import_module(RECORDS.module).TokenEntry
    assert "nemo_gym.Entry" in gym.install().rebound
    assert package.Entry is tokenrecords.TokenEntry


class OfNoFile:
    """Finds and loads a module that comes from no file."""

    def find_spec(self, name, _path=None, _target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == RECORDS.module else None

    def create_module(self, _spec):
        return None

    def exec_module(self, _module):
        raise AssertionError("it was run")


@pytest.mark.usefixtures("package")
def test_a_module_of_no_file_is_refused_before_it_is_run(monkeypatch):
    gym.install()
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path[:1], OfNoFile(), *sys.meta_path[1:]])
    with pytest.raises(gym.UnknownReleaseError, match=r"^\. can't be read: "):
        importlib.import_module(RECORDS.module)


def test_of_several_places_that_with_the_records_is_looked_at(package, tmp_path_factory, monkeypatch):
    (package / "nemo_gym" / "__init__.py").unlink()
    other = tmp_path_factory.mktemp("other")
    (other / "nemo_gym").mkdir()
    monkeypatch.syspath_prepend(other)
    assert gym.install().directory == package / "nemo_gym"


def test_a_module_of_that_name_is_no_package(tmp_path, monkeypatch):
    (tmp_path / "nemo_gym.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(gym.UnknownReleaseError, match=r"^nemo_gym is not installed"):
        gym.install()


def test_a_module_without_a_spec_is_no_package():
    sys.modules["nemo_gym"] = types.ModuleType("nemo_gym")
    with pytest.raises(gym.UnknownReleaseError, match=r"^nemo_gym is not installed"):
        gym.install()


def test_a_module_that_uninstalls_while_it_is_imported_keeps_its_own(package):
    path = package / RECORDS_FILE
    path.write_text(f"{path.read_text()}\nimport tokenrecords.gym\ntokenrecords.gym.uninstall()\n")
    gym.install()
    assert importlib.import_module(RECORDS.module).TokenEntry.__module__ == RECORDS.module


def test_a_module_that_is_not_there_is_not_found(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(write_package(tmp_path, digest=None))
    gym.install()
    assert importlib.util.find_spec(DIGEST.module) is None


@pytest.mark.parametrize("name", ["TokenCaptureStore", "_Private"])
def test_what_stands_behind_an_interface_is_left_alone_where_it_is_unknown(package, name):
    (package / "nemo_gym" / "token_id_capture" / "store.py").write_text(f"class {name}: ...\n")
    assert gym.install().modules == (RECORDS.module, DIGEST.module)
    store = importlib.import_module(f"{CAPTURE}.store")
    assert not hasattr(getattr(store, name), "_read_entries_unlocked")
    assert store.__loader__ is store.__spec__.loader
