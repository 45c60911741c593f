"""The checks of this project, as CI and contributors run them: `nox -l` lists them, `nox -s lint` runs one."""

import json
import os
import re
import shutil
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import xml.etree.ElementTree as ET
from pathlib import Path

import nox
import nox.command

nox.needs_version = ">=2025.2.9"
nox.options.download_python = "never"

HERE = Path(__file__).parent
EXTRAS = nox.project.load_toml("pyproject.toml")["project"]["optional-dependencies"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.14t"]
TESTED = os.environ.get("TOKENRECORDS_TESTED")  # the Python of these on which the suite was run just now
WHEELS: dict[str, tempfile.TemporaryDirectory[str]] = {}

# pyenv keeps its Pythons off the PATH.
pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *map(str, sorted(pyenv.glob("versions/*/bin")))])

GYM = "nemo-gym==0.7.0"


def tool(name: str) -> str:
    """The requirement of a tool in the extras `dev` and `test`, for sessions that need it alone."""
    return next(each for each in EXTRAS["dev"] + EXTRAS["test"] if re.match(rf"{name}(?![\w-])", each))


def install(session: nox.Session, extras: str, *others: str) -> None:
    """Install the package, which is built once for each Python."""
    version = session.run("python", "-VV", silent=True).split("(")[0].strip()
    if version not in WHEELS:
        WHEELS[version] = tempfile.TemporaryDirectory()
        session.run("pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", WHEELS[version].name, str(HERE))
    [built] = Path(WHEELS[version].name).iterdir()
    session.install(f"tokenrecords[{extras}] @ {built.as_uri()}", *others)


def pytest(session: nox.Session, *arguments: str, skips: str = "none", **variables: str) -> None:
    """Run tests; one that is skipped, and that `tests/support/skips.py` does not allow by the name `skips`, fails."""
    session.run("pytest", *arguments, env={"TOKENRECORDS_SKIPS": skips, **variables})


def cargo(session: nox.Session, *arguments: str, **variables: str) -> None:
    """Run cargo; features of the Python extension are built for the session's Python."""
    session.run("cargo", *arguments, external=True, env=variables)


@nox.session(python=[each for each in PYTHONS if each != TESTED])
def tests(session: nox.Session) -> None:
    """The whole suite, on each Python."""
    install(session, "test")
    pytest(session, *(session.posargs or ("-n", "auto")), skips="elsewhere")


@nox.session
def coverage(session: nox.Session) -> None:
    """The whole suite once more: lines and branches of the Python layer that it runs."""
    install(session, "test", tool("pytest-cov"))
    pytest(session, "-n", "auto", "--cov", "--cov-report=term-missing", skips="elsewhere")


@nox.session
def lint(session: nox.Session) -> None:
    """Format and lint; clippy keeps the oldest supported Rust, too (`incompatible_msrv`)."""
    session.install(tool("ruff"))
    session.run("ruff", "format", "--check")
    session.run("ruff", "check")
    cargo(session, "fmt", "--check")
    clippy = ("clippy", "--quiet", "--all-targets")
    cargo(session, *clippy, "--no-default-features", "--", "-D", "warnings")
    cargo(session, *clippy, "--all-features", "--", "-D", "warnings")
    free_threaded = str(HERE / ".ci" / "free-threaded.cfg")  # described to PyO3's build, to compile for it without it
    cargo(session, *clippy, "--all-features", "--", "-D", "warnings", PYO3_CONFIG_FILE=free_threaded)


@nox.session
def types(session: nox.Session) -> None:
    """Types of the Python layer, and the stub against the extension."""
    install(session, "test", tool("mypy"))
    session.run("mypy")
    session.run("stubtest", "tokenrecords._core")


@nox.session
def readers(session: nox.Session) -> None:
    """What others read of our Parquet files, and give back."""
    install(session, "test", "duckdb", "polars", "datasets")
    pytest(session, "tests/files/test_readers.py", "tests/training/test_readers.py", "docs/files.md")


@nox.session
def clusters(session: nox.Session) -> None:
    """Records and chains on a Ray of two CPUs."""
    install(session, "ray,test")
    pytest(session, "tests/ray")
    session.run("python", "benches/clusters.py", "2")


@nox.session
def browser(session: nox.Session) -> None:
    """The page of rollouts in Chromium, which is installed where it is missing."""
    if not shutil.which("chromedriver"):
        sudo = () if os.geteuid() == 0 else ("sudo",)
        session.run(*sudo, "apt-get", "update", "--quiet", external=True)
        packages = ("--no-install-recommends", "chromium", "chromium-driver")
        session.run(*sudo, "apt-get", "install", "--quiet", "--yes", *packages, external=True)
    install(session, "test", "selenium>=4.20", "tokenizers>=0.20")
    pytest(session, "tests/report")


@nox.session(venv_backend="none")
def rust(session: nox.Session) -> None:
    """The core's own tests, with the hardware back end and with it forced off."""
    test = ("test", "--quiet", "--no-default-features")
    cargo(session, *test)
    soft = '--cfg tokenrecords_backend="scalar" --cfg sha2_backend="soft"'
    cargo(session, *test, "--target-dir", "target/soft", RUSTFLAGS=soft)
    # What needs Python is in the suite, but for a panic: no call of the built extension is known to end in one.
    embedded = {"PYO3_PYTHON": sys.executable, "LD_LIBRARY_PATH": sysconfig.get_config_var("LIBDIR")}
    cargo(session, "test", "--quiet", "--features", "python", "--lib", "python::", **embedded)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation site, in `site/`; Rust docs; what is drawn and written from the sources is current.

    `nox -s docs -- serve` serves the site, and builds it again where a page changes.
    """
    # The package itself is read, not imported. The settings in pyproject.toml are of these plugins, too.
    session.install(*EXTRAS["docs"], *map(tool, ("pytest", "pytest-timeout", "pytest-xdist")))
    quiet = {"NO_MKDOCS_2_WARNING": "1"}  # a notice of the theme's makers
    if session.posargs:
        session.run("mkdocs", *session.posargs, env=quiet)
        return
    session.run("mkdocs", "build", "--strict", env=quiet)
    session.run("pytest", "--noconftest", "tests/package/test_site.py", env={"TOKENRECORDS_SITE": str(HERE / "site")})
    cargo(session, "doc", "--quiet", "--no-deps", "--no-default-features", RUSTDOCFLAGS="-D warnings")
    session.run("python3", "docs/draw_rooms.py", "--check")
    session.run("python3", "benches/table.py", "--check")


@nox.session
def benches(session: nox.Session) -> None:
    """Each way of the benches once, to see that everything runs."""
    install(session, "test")
    results = Path(session.create_tmp()) / "results.json"
    session.run("python", "benches/bench.py", "--smoke", "--json", str(results))
    session.run("python", "benches/arrow.py", "1")
    cargo(session, "bench", "--quiet", "--no-default-features", "--", "--test")


@nox.session
def workflows(session: nox.Session) -> None:
    """The workflows and templates of .github are well-formed, and the workflows grant no more than they need."""
    session.install("check-jsonschema>=0.33", "zizmor>=1.12")
    github = HERE / ".github"
    schemas = {
        "github-workflows": "workflows/*.yml",
        "github-issue-config": "ISSUE_TEMPLATE/config.yml",
        "github-issue-forms": "ISSUE_TEMPLATE/[!c]*.yml",
    }
    for schema, pattern in schemas.items():
        session.run("check-jsonschema", "--builtin-schema", f"vendor.{schema}", *map(str, sorted(github.glob(pattern))))
    session.run("zizmor", "--offline", "--no-progress", "--persona", "auditor", str(github / "workflows"))


@nox.session
def wheel(session: nox.Session) -> None:
    """A wheel for manylinux2014: its tag and symbols, and the README's first command on it, away from the sources."""
    session.install(tool("maturin"), "ziglang>=0.13", "auditwheel>=6.5")
    readme = (HERE / "README.md").read_text(encoding="utf-8")
    command, printed = (
        re.search(rf"^```{language}\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)[1] for language in ("sh", "text")
    )
    with tempfile.TemporaryDirectory() as name, session.chdir(name):
        build = ("maturin", "build", "--release", "--zig", "--compatibility", "manylinux2014")
        manifest = str(HERE / "Cargo.toml")
        session.run(*build, "--interpreter", "python", "--manifest-path", manifest, "--out", name)
        [built] = Path(name).glob("*.whl")
        shown = json.loads(session.run("auditwheel", "show", "--json", built.name, silent=True, stderr=None))
        session.log(f"{shown['overall_tag']}: {shown['versioned_symbols']}")
        if not shown["overall_tag"].startswith("manylinux_2_17_") or shown["external_libs"]:
            session.error(f"{built.name} needs more than its tag says")
        shutil.copytree(HERE / "examples", "examples")
        on_wheel = command.replace("'.[cli]'", f"'./{built.name}[cli]'")
        output = session.run("bash", "-euo", "pipefail", "-c", on_wheel, external=True, silent=True)
        session.log(output)
        if on_wheel == command or not output.endswith(printed):
            session.error("the README's first command does not print what the README shows")


@nox.session(python="3.13", default=False)
def clients(session: nox.Session) -> None:
    """Agents of other makers behind the gateway: Anthropic's client, litellm."""
    install(session, "test", "anthropic>=0.50", "litellm>=1.60")
    pytest(session, "-q", "tests/gateway/test_clients.py", "tests/gateway/test_other_clients.py")


@nox.session(python="3.13", default=False)
def kills(session: nox.Session) -> None:
    """A gateway killed in the midst of calls, 200 times or as often as said: `nox -s kills -- 30`."""
    install(session, "test")
    count = int(session.posargs[0]) if session.posargs else 200
    test = ("tests/gateway/test_command.py", "-k", "survives_a_kill")
    pytest(session, "-q", f"--timeout={300 + count}", *test, TOKENRECORDS_KILLS=str((count + 1) // 2))


@nox.session(default=False)
def mutants(session: nox.Session) -> None:
    """Mistakes are planted in rooms or files, one at a time, in a copy: those that the tests let live are printed.

    `nox -s mutants -- lineage text/html rust/digest`: in the Python layer, the room's own tests are run; in the core,
    `cargo test`. What was found stays in target/mutants, from where another run goes on; what lived is planted again.
    """
    rooms = session.posargs or session.error("a room is needed: nox -s mutants -- lineage")
    of_rust = [room for room in rooms if room.startswith("rust/")]
    if of_rust != rooms:
        install(session, "test", "cosmic-ray>=8.4")
    if of_rust and not shutil.which("cargo-mutants"):
        cargo(session, "install", "--quiet", "--locked", "cargo-mutants")
    for room in rooms:
        if room not in of_rust:
            session.run("python", "tests/support/mutants.py", room)
            continue
        output = HERE / "target" / "mutants" / room.replace("/", "-")
        output.mkdir(parents=True, exist_ok=True)
        files = f"{room}/**" if (HERE / room).is_dir() else f"{room}.rs"
        options = ("--no-default-features", "--iterate", "--file", files, "--output", str(output))
        # 2 and 3: some lived, or took too long.
        session.run("cargo", "mutants", *options, external=True, success_codes=[0, 2, 3])


@nox.session
def fuzz(session: nox.Session) -> None:
    """The seeds of each fuzz target and 10,000 mutations, the same each time; or all, or some, for as long as said.

    `nox -s fuzz -- 600 scan_body read_jsonl` is ten minutes for each of two.
    What is found on the way stays in fuzz/work, from where the next run goes on, and what fails in fuzz/artifacts.
    """
    install(session, "test", "atheris>=3")
    if not shutil.which("cargo-fuzz"):
        cargo(session, "install", "--quiet", "--locked", "cargo-fuzz")
    seconds, *names = session.posargs or [""]
    length = (f"-max_total_time={seconds}",) if seconds else ("-seed=1", "-runs=10000")
    native = tomllib.loads((HERE / "fuzz" / "Cargo.toml").read_text(encoding="utf-8"))["bin"]
    of_rust = {target["name"] for target in native}
    for target in names or sorted(path.name for path in (HERE / "fuzz" / "corpus").iterdir()):
        work, artifacts = HERE / "fuzz" / "work" / target, HERE / "fuzz" / "artifacts" / target
        work.mkdir(parents=True, exist_ok=True)
        artifacts.mkdir(parents=True, exist_ok=True)
        corpora = (str(work), str(HERE / "fuzz" / "corpus" / target))
        options = (*length, "-timeout=30", "-print_final_stats=1", "-verbosity=0")
        if target in of_rust:
            # The sanitizer's flags are unstable; so any toolchain will do.
            run = ("fuzz", "run", "--fuzz-dir", "fuzz", target, *corpora, "--", *options)
            cargo(session, *run, RUSTC_BOOTSTRAP="1")
        else:
            session.run("python", "fuzz/python", target, *corpora, f"-artifact_prefix={artifacts}/", *options)


@nox.session
def sanitize(session: nox.Session) -> None:
    """AddressSanitizer over the Rust tests, and over the Python tests that pass the extension what is strange."""
    install(session, "test")
    host = re.search(r"^host: (.*)$", session.run("rustc", "-vV", external=True, silent=True), re.MULTILINE)[1]
    options = ("--quiet", "--lib", "--target", host, "--target-dir", "target/asan")
    unstable = {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": "-Zsanitizer=address"}  # so that any toolchain will do
    cargo(session, "test", *options, "--no-default-features", **unstable)
    python = session.run("python", "-c", "import sys; print(sys.executable)", silent=True).strip()
    quick = {"CARGO_PROFILE_RELEASE_LTO": "off", "CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS": "true"}
    of_python = {"PYO3_PYTHON": python, "PYO3_BUILD_EXTENSION_MODULE": "1"}
    cargo(session, "build", *options, "--release", "--features", "python", **unstable, **quick, **of_python)
    built = HERE / "target" / "asan" / host / "release" / "libtokenrecords.so"
    with tempfile.TemporaryDirectory() as name:
        package = Path(name, "tokenrecords")
        shutil.copytree(HERE / "python" / "tokenrecords", package, ignore=shutil.ignore_patterns("*.so"))
        shutil.copy(built, package / "_core.so")
        runtime = session.run("gcc", "-print-file-name=libasan.so", external=True, silent=True).strip()
        # Python frees little at its end, and its own allocator would hide what lies behind a buffer; some tests ask for
        # more memory than there is.
        asked = "detect_leaks=0:allocator_may_return_null=1"
        checked = {"LD_PRELOAD": runtime, "ASAN_OPTIONS": asked, "PYTHONMALLOC": "malloc"}
        strange = ("tests/core", "tests/entry", "tests/engines/test_body.py", "tests/engines/test_sse.py")
        pytest(session, "-q", "--capture=sys", *strange, **checked, PYTHONPATH=name)


@nox.session
def file_kills(session: nox.Session) -> None:
    """A writer of files killed at random moments, 1,000 times or as often as said: `nox -s file_kills -- 10000`."""
    install(session, "test")
    count = int(session.posargs[0]) if session.posargs else 1_000
    of_appends = count * 4 // 5  # the other writer, of whole files, is killed a quarter as often
    crashes = "tests/files/test_durable_crash.py"
    pytest(session, "-q", "-s", f"--timeout={300 + count}", crashes, TOKENRECORDS_KILLS=str(of_appends))


@nox.session
def interrupts(session: nox.Session) -> None:
    """Ctrl-C at random moments of reads and of writes, 1,000 each or as often as said: `nox -s interrupts -- 10000`."""
    install(session, "test")
    count = int(session.posargs[0]) if session.posargs else 1_000
    tests = ("tests/files/test_jsonl_threads.py", "tests/files/test_durable_interrupts.py")
    chosen = ("-k", "interrupts_at_any_moment", *tests)
    pytest(session, "-q", "-s", f"--timeout={300 + count}", *chosen, TOKENRECORDS_INTERRUPTS=str(count))


@nox.session(python="3.13", default=False)
def gym(session: nox.Session) -> None:
    """NeMo Gym's own tests of its capture: none fails with install(), first or last, that passes without."""
    only = install_gym(session)
    with tempfile.TemporaryDirectory() as name, session.chdir(name):
        session.run("pip", "download", "--quiet", "--no-binary", "nemo-gym", *only)
        with tarfile.open(next(Path().glob("*.tar.gz"))) as archive:
            archive.extractall(filter="data")
        sources = next(path for path in Path().iterdir() if path.is_dir())
        gather_gym_tests(sources, Path("tests"))
        passed = {}
        for mode in ("never", "early", "late"):
            results = f"{mode}.xml"
            session.run(
                *(
                    "pytest",
                    "-q",
                    "--tb=short",
                    "-p",
                    "gym_plugin",
                    "-o",
                    "asyncio_mode=auto",
                    "--junitxml",
                    results,
                    "tests",
                ),
                env={"GYM_INSTALL": mode, "PYTHONPATH": str(HERE / "tests" / "support")},
                success_codes=[0, 1],
            )
            cases = ET.parse(results).iter("testcase")  # noqa: S314 - pytest wrote it just now
            passed[mode] = {f"{case.get('classname')}::{case.get('name')}" for case in cases if not len(case)}
        session.log(", ".join(f"{mode}: {len(names)} passed" for mode, names in passed.items()))
        lost = (passed["never"] - passed["early"]) | (passed["never"] - passed["late"])
        if lost or not passed["never"]:
            session.error(f"these pass without install() alone: {sorted(lost)}")


@nox.session(python="3.13", default=False)
def scenarios(session: nox.Session) -> None:
    """Rollouts of all kinds, captured and judged by NeMo Gym just now, are judged alike here."""
    install_gym(session)
    install(session, "test")
    made = Path(session.create_tmp()).resolve() / "gym_scenarios.jsonl"
    session.run("python", "tests/support/gym_scenarios.py", str(made), silent=True)
    test = "tests/training/test_gym_scenarios.py"
    pytest(session, "-q", "-p", "no:asyncio", test, TOKENRECORDS_SCENARIOS=str(made))


@nox.session(python="3.13", default=False)
def gym_run(session: nox.Session) -> None:
    """NeMo Gym's model server before an engine of ours: the same results on this package, and what it gains."""
    install_gym(session)
    session.run("python", str(HERE / "benches" / "gym_run"), *session.posargs)


def install_gym(session: nox.Session) -> tuple[str, ...]:
    """Install NeMo Gym, as far as its capture needs, and this package; skip the session where that can't be done.

    Returns:
        The arguments that name NeMo Gym alone for pip: its metadata asks for a newer Python than it needs.
    """
    only = ("--no-deps", "--ignore-requires-python", GYM)
    install(session, "")
    try:
        session.install("--requirement", str(HERE / ".ci" / "gym.txt"))
        session.install(*only)
    except nox.command.CommandFailed:
        session.skip(f"{GYM} can't be installed")
    return only


def gather_gym_tests(sources: Path, to: Path) -> None:
    """Copy the tests that have to do with the capture, and what they share."""
    own = sources / "tests"
    models = sources / "responses_api_models" / "vllm_model" / "tests"
    for folder, found in ((to / "unit_tests", own / "unit_tests"), (to / "vllm_model", models)):
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        for path in found.glob("test_*.py"):
            if "token_id_capture" in path.read_text(encoding="utf-8"):
                shutil.copy(path, folder)
    for shared in ("__init__.py", "conftest.py"):
        shutil.copy(own / shared, to)
    shutil.copytree(own / "unit_tests" / "fixtures", to / "unit_tests" / "fixtures")
