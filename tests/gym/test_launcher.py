"""A launched command, and what it starts, installs before NeMo Gym is imported, and pays nothing before that."""

import importlib
import importlib.util
import os
import subprocess
import sys

import pytest
from support.fake_gym import CAPTURE, forget_package, write_package
from tokenrecords import TokenEntry, gym
from tokenrecords.gym.__main__ import SITE, environment

ENTRY = "from nemo_gym.token_id_capture.consumer import Entry; print(Entry.__module__)"
IMPORTED = "import sys; print(sorted({'numpy', 'pydantic', 'tokenrecords', 'importlib.abc'} & set(sys.modules)))"
OURS, THEIRS = "tokenrecords.entry.model\n", "nemo_gym.token_id_capture.records\n"


def run(*command, path=(), **environment):
    """Run a command with these places on PYTHONPATH, and no others but the tests' own."""
    places = os.pathsep.join(map(str, [*path, *filter(None, [os.environ.get("PYTHONPATH")])]))
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": places, **environment}, capture_output=True, text=True, check=False
    )


def launched(*command, options=(), path=()):
    return run(sys.executable, "-m", "tokenrecords.gym", *options, "--", *command, path=path)


@pytest.fixture
def package(tmp_path):
    return write_package(tmp_path)


def test_the_command_runs_on_ours(package):
    result = launched(sys.executable, "-c", ENTRY, path=[package])
    assert (result.stdout, result.stderr, result.returncode) == (OURS, "", 0)


def test_what_the_command_starts_does_too(package):
    program = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {ENTRY!r}], check=True)"
    assert launched(sys.executable, "-c", program, path=[package]).stdout == OURS


def test_spawned_workers_do_too(package):
    (package / "work.py").write_text(f"def work():\n    {ENTRY}\n")
    program = (
        "import multiprocessing, work\n"
        "if __name__ == '__main__':\n"
        "    worker = multiprocessing.get_context('spawn').Process(target=work.work)\n"
        "    worker.start(); worker.join()\n"
    )
    (package / "program.py").write_text(program)
    assert launched(sys.executable, str(package / "program.py"), path=[package]).stdout == OURS


def test_without_the_package_nothing_is_imported():
    bare = run(sys.executable, "-c", IMPORTED)
    result = launched(sys.executable, "-c", IMPORTED)
    assert (result.stdout, result.stderr) == (bare.stdout, "")
    assert "tokenrecords" not in result.stdout


def test_isolated_pythons_are_not_reached(package):
    program = f"import sys; sys.path.insert(0, {str(package)!r}); {ENTRY}"
    assert launched(sys.executable, "-E", "-c", program, path=[package]).stdout == THEIRS


def test_a_sitecustomize_that_is_there_runs(package):
    (package / "sitecustomize.py").write_text("print('theirs')\nvalue = 5\n")
    program = f"import sitecustomize; print(sitecustomize.value, sitecustomize.__file__); {ENTRY}"
    result = launched(sys.executable, "-c", program, path=[package])  # the launcher runs it, too
    assert result.stdout == f"theirs\ntheirs\n5 {package / 'sitecustomize.py'}\n{OURS}"


def test_one_that_fails_is_reported_as_ever(package):
    (package / "sitecustomize.py").write_text("raise ValueError('broken')\n")
    result = launched(sys.executable, "-c", ENTRY, path=[package])
    assert result.stdout == OURS
    assert "ValueError: broken" in result.stderr


@pytest.fixture
def unknown(package):
    path = package / "nemo_gym" / "token_id_capture" / "records.py"
    path.write_text(path.read_text().replace("DIGEST_VERSION = 1", "DIGEST_VERSION = 2"))
    return f"{path} is of an unknown release: DIGEST_VERSION is `2`, not `1`"


def test_an_unknown_release_runs_on_its_own_code(package, unknown):
    result = launched(sys.executable, "-c", ENTRY, path=[package])
    assert (result.stdout, result.returncode) == (THEIRS, 0)
    assert result.stderr == f"NeMo Gym runs on its own code: {unknown}\n"


def test_an_unknown_release_ends_the_start_where_it_is_required(package, unknown):
    result = launched(sys.executable, "-c", ENTRY, options=["--require"], path=[package])
    assert (result.stdout, result.stderr, result.returncode) == ("", f"tokenrecords.gym: {unknown}\n", 1)


@pytest.mark.parametrize("require", [False, True])
def test_a_python_that_lacks_this_package(package, require):
    """As that of a server with an environment of its own."""
    (package / "tokenrecords").mkdir()
    (package / "tokenrecords" / "__init__.py").write_text("raise ImportError('not for this Python')")
    mode = {"TOKENRECORDS_GYM": "require" if require else "1"}
    result = run(sys.executable, "-c", ENTRY, path=[SITE, package], **mode)
    message = f"tokenrecords.gym: {sys.executable} can't import tokenrecords: not for this Python"
    if require:
        assert (result.stdout, result.stderr, result.returncode) == ("", f"{message}\n", 1)
    else:
        assert (result.stdout, result.returncode) == (THEIRS, 0)
        assert result.stderr == f"{message}; NeMo Gym runs on its own code\n"


def test_a_command_that_is_not_there():
    result = launched("no-such-command")
    assert (result.stderr, result.returncode) == ("no-such-command can't be started: No such file or directory\n", 127)


def test_the_command_gets_its_own_arguments_and_status():
    result = launched(sys.executable, "-c", "import sys; print(sys.argv[1:]); sys.exit(7)", "--require", "--", "x")
    assert (result.stdout, result.returncode) == ("['--require', '--', 'x']\n", 7)


@pytest.fixture
def start(package, monkeypatch):
    """Runs the file in this process, as a Python does that starts with its directory on the path."""
    monkeypatch.setattr(sys, "path", [str(SITE), str(package), *sys.path])
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    before = sys.modules.pop("sitecustomize", None)

    def run_file(*, require=False):
        monkeypatch.setenv("TOKENRECORDS_GYM", environment(require=require)["TOKENRECORDS_GYM"])
        spec = importlib.util.spec_from_file_location("sitecustomize", SITE / "sitecustomize.py")
        sys.modules["sitecustomize"] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return sys.modules["sitecustomize"]

    yield run_file
    gym.uninstall()
    forget_package()
    sys.modules.pop("sitecustomize", None)
    if before is not None:
        sys.modules["sitecustomize"] = before


def test_it_waits_and_installs_once(package, start):
    (package / "sitecustomize.py").write_text("value = 5\n")
    assert start().value == 5
    assert str(SITE) not in sys.path
    assert gym.status() is None
    assert importlib.util.find_spec("no_such_module") is None
    assert importlib.import_module(f"{CAPTURE}.consumer").Entry is TokenEntry
    assert gym.status().directory == package / "nemo_gym"


def test_a_place_that_is_named_from_where_one_stands_goes_too(package, start, monkeypatch):
    (package / "sitecustomize.py").write_text("value = 5\n")
    monkeypatch.chdir(SITE.parent)
    monkeypatch.setattr(sys, "path", [SITE.name, str(package), *sys.path[2:]])
    assert start().value == 5
    assert SITE.name not in sys.path


@pytest.mark.parametrize(("given", "then"), [(None, ""), ("", ""), ("a:b", ":a:b")])
def test_its_place_comes_first_and_no_other_is_made_up(monkeypatch, given, then):
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if given is not None:
        monkeypatch.setenv("PYTHONPATH", given)
    assert environment(require=True)["PYTHONPATH"] == f"{SITE}{then}"


def test_one_that_lacks_a_module_fails_by_that_name(package, start):
    (package / "sitecustomize.py").write_text("import no_such_module\n")
    with pytest.raises(ModuleNotFoundError, match="no_such_module"):
        start()


@pytest.mark.parametrize("require", [False, True])
def test_it_says_why_this_package_can_not_be_imported(package, start, monkeypatch, capsys, require):
    monkeypatch.setattr(sys, "path", [str(SITE), str(package)])
    assert start(require=require).__file__ == str(SITE / "sitecustomize.py")
    monkeypatch.setitem(sys.modules, "tokenrecords.gym", None)
    message = f"tokenrecords.gym: {sys.executable} can't import tokenrecords: "
    if require:
        with pytest.raises(SystemExit, match="can't import tokenrecords: "):
            importlib.import_module("nemo_gym")
    else:
        importlib.import_module("nemo_gym")
        assert capsys.readouterr().err.startswith(message)


def test_the_lineage_store_is_ours(nemo_gym):
    nemo_gym("lineage")
    program = "from nemo_gym.token_id_capture.lineage import FileLineageStore; print(FileLineageStore.__module__)"
    reference = sys.path[0]
    assert launched(sys.executable, "-c", program, path=[reference]).stdout == "tokenrecords.gym\n"
    assert run(sys.executable, "-c", program, path=[reference]).stdout == "nemo_gym.token_id_capture.lineage\n"
