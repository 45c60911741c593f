"""Plants mistakes in a room of the Python layer, one at a time, and prints those that its tests let live.

`python mutants.py ROOM`: a room is a folder of `python/tokenrecords`, or one of its files: `lineage`, `text/html`. The
copy that is planted in, and what was found, stay in `target/mutants/ROOM`. Another run goes on from there, and plants
again what lived, before the tests of now. Where the room itself has changed, it begins anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import tokenrecords._core

REPOSITORY = Path(__file__).parents[2]
# Of each operator, the nearest others. `|` is left alone: most are in annotations, which nothing runs.
PAIRS = (
    "Add_Sub Sub_Add Mul_FloorDiv Div_Mul FloorDiv_Mul Mod_FloorDiv Pow_Mul LShift_RShift RShift_LShift BitAnd_BitOr "
    "BitXor_BitOr Eq_NotEq NotEq_Eq Lt_LtE Lt_GtE LtE_Lt LtE_Gt Gt_GtE Gt_LtE GtE_Gt GtE_Lt Is_IsNot IsNot_Is "
    "USub_UAdd Delete_Invert Delete_Not Delete_USub"
)
CONFIG = """
[cosmic-ray]
module-path = "{module}"
timeout = {timeout:.1f}
excluded-modules = []
test-command = "{command}"
distributor.name = "local"

[cosmic-ray.filters.operators-filter]
exclude-operators = ['core/Replace(Binary|Comparison|Unary)Operator_(?!({pairs})$)']
"""


def run(*command: str | Path, cwd: Path) -> None:
    """Run a command in the copy, on the copy's own package."""
    subprocess.run(command, cwd=cwd, env={**os.environ, "PYTHONPATH": str(cwd / "python")}, check=True)


def copy_repository(to: Path) -> None:
    """The files that git knows, or would, and the extension that is installed."""
    shutil.rmtree(to, ignore_errors=True)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (REPOSITORY / name).exists():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / name, to / name)
    shutil.copy(tokenrecords._core.__file__, to / "python" / "tokenrecords")


def digest(path: Path) -> str:
    """Of a file, or of a folder's files in order."""
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def report(session: Path) -> None:
    """Print the mistakes that lived: where, the line as it was, and as it was planted."""
    where = """FROM work_results JOIN mutation_specs USING (job_id) WHERE worker_outcome = 'NORMAL'
        AND diff NOT LIKE '%\n-if TYPE_CHECKING%'"""  # which nothing runs
    found = f"SELECT module_path, start_pos_row, diff {where} AND test_outcome = 'SURVIVED' ORDER BY 1, 2"
    with sqlite3.connect(session) as database:
        planted = database.execute(f"SELECT count(*) {where}").fetchone()[0]
        lived = database.execute(found).fetchall()
    for path, row, diff in lived:
        changed = [line for line in diff.splitlines() if line[:1] in "-+" and line[:3] not in ("---", "+++")]
        print(f"{path}:{row}", *changed, sep="\n")  # noqa: T201
    print(f"{planted} planted, {len(lived)} lived")  # noqa: T201


def command_of(room: str, copy: Path) -> list[str]:
    """The tests of the room, those of a file of it first."""
    folder, _, name = room.partition("/")
    nearest = f"tests/{folder}/test_{name}.py"
    tests = [nearest] if (copy / nearest).exists() else []
    return [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests, f"tests/{folder}"]


def main(room: str) -> None:
    folder = REPOSITORY / "target" / "mutants" / room.replace("/", "-")
    copy, config = folder / "copy", folder / "config.toml"
    copy_repository(copy)
    module = Path("python", "tokenrecords", room)
    if not (copy / module).is_dir():
        module = module.with_suffix(".py")
    session = folder / f"{digest(copy / module)}.sqlite"
    test = command_of(room, copy)
    start = time.monotonic()
    run(*test, cwd=copy)
    timeout = 10 + 5 * (time.monotonic() - start)
    pairs = PAIRS.replace(" ", "|")
    config.write_text(CONFIG.format(module=module, timeout=timeout, command=" ".join(test), pairs=pairs))
    if session.exists():
        with sqlite3.connect(session) as database:
            database.execute("DELETE FROM work_results WHERE test_outcome = 'SURVIVED'")
    else:
        run("cosmic-ray", "init", config, session, cwd=copy)
    run("cr-filter-operators", session, config, cwd=copy)
    run("cosmic-ray", "exec", config, session, cwd=copy)
    report(session)


if __name__ == "__main__":
    main(sys.argv[1])
