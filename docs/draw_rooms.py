"""Draws docs/rooms.svg: the rooms of the package, and an arrow for each room that imports another.

python docs/draw_rooms.py [--check]

The order of the rooms is that of the list in docs/architecture.md. With --check nothing is written. It fails when an
arrow points up, when imports form a circle, when the list is not that of the folders, or when the picture is stale.
"""

from __future__ import annotations

import ast
import re
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

HERE = Path(__file__).parent
PACKAGE = HERE.parent / "python" / "tokenrecords"
LIST, PICTURE = HERE / "architecture.md", HERE / "rooms.svg"
TOP, CORE = "tokenrecords", "_core"

Graph = dict[str, set[str]]  # each name, and the names that it imports


def modules() -> dict[str, Path]:
    """The files of the package, by module name."""
    found = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in found.items()}


def imports(files: dict[str, Path]) -> Graph:
    """What each module imports of the package, wherever in the file it does so."""
    known = {*files, f"{TOP}.{CORE}"}
    graph: Graph = {name: set() for name in known}
    for name, path in files.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                if node.level:
                    sys.exit(f"{path} line {node.lineno} is a relative import: the full name is needed")
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [each if each in known else node.module or "" for each in names]
            else:
                continue
            graph[name].update(known.intersection(names) - {name})
    return graph


def room(module: str) -> str:
    """The folder of a module; the files above the folders are one room, named as the package."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and (parts[1] == CORE or (PACKAGE / parts[1]).is_dir()) else TOP


def rooms(graph: Graph) -> Graph:
    """Which room imports which."""
    found: Graph = {room(module): set() for module in graph}
    for module, imported in graph.items():
        found[room(module)].update({room(name) for name in imported} - {room(module)})
    return found


def faults(files: Graph, between: Graph, listed: list[str]) -> list[str]:
    """What is wrong with the house."""
    found = []
    if missing := sorted(set(listed) ^ set(between)):
        found.append(f"{', '.join(missing)}: each room is a folder, and stands in the list of {LIST.name}")
    height = {name: at for at, name in enumerate(listed)}
    for module, imported in sorted(files.items()):
        ups = [name for name in sorted(imported) if height.get(room(name), -1) > height.get(room(module), len(height))]
        found += [f"{module} imports {name}, which stands above it" for name in ups]
    try:
        TopologicalSorter(files).prepare()
    except CycleError as circle:
        found.append(f"the imports form a circle: {' imports '.join(reversed(circle.args[1]))}")
    return found


def reduced(graph: Graph) -> Graph:
    """The graph without the arrows that follow from others."""

    def reached(name: str) -> set[str]:
        return graph[name].union(*(reached(each) for each in graph[name]))

    return {name: below - set().union(*(reached(each) for each in below)) for name, below in graph.items()}


def rows(arrows: Graph) -> list[list[str]]:
    """The rooms by depth, the highest first: each stands just below the lowest of those that import it."""
    order = list(TopologicalSorter(arrows).static_order())[::-1]
    depth = dict.fromkeys(order, 0)
    for name in order:
        for below in arrows[name]:
            depth[below] = max(depth[below], depth[name] + 1)
    found = [[name for name in order if depth[name] == at] for at in range(1 + max(depth.values()))]
    middle: dict[str, float] = {}
    for row in found:  # rooms stand below those that import them, where they can
        over = {name: [middle[other] for other in middle if name in arrows[other]] for name in row}
        row.sort(key=lambda name: (sum(over[name]) / max(1, len(over[name])), name))
        middle.update({name: at - len(row) / 2 + 0.5 for at, name in enumerate(row)})
    return found


WIDTH, HEIGHT, ACROSS, DOWN = 150, 34, 190, 70  # of a box, and from one to the next

# One grey and one blue that can be read on white and on black.
HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" font-family="sans-serif">
<title>The rooms of tokenrecords: an arrow goes from a room to one that it imports</title>
<defs>
<marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">
<path d="M0 0 8 4 0 8z" fill="#808890"/>
</marker>
</defs>
"""


def picture(graph: Graph) -> str:
    """The rooms in rows, with the arrows that don't follow from others."""
    arrows = reduced(graph)
    drawn = rows(arrows)
    middle = max(map(len, drawn)) * ACROSS / 2
    place = {
        name: (middle + (at - len(row) / 2 + 0.5) * ACROSS, (deep + 0.5) * DOWN)
        for deep, row in enumerate(drawn)
        for at, name in enumerate(row)
    }
    parts = [HEAD.format(width=f"{2 * middle:g}", height=len(drawn) * DOWN)]
    for name, (x, y) in place.items():
        for below in sorted(arrows[name]):
            to_x, to_y = place[below]
            start, end = y + HEIGHT / 2, to_y - HEIGHT / 2
            # A curve that leaves and arrives upright, and bows out beside the rows that it passes.
            bow = 0.0 if end - start < DOWN else WIDTH if x >= middle else -WIDTH
            path = (
                f"M{x:g} {start:g}C{x + bow:g} {start + DOWN / 2:g} {to_x + bow:g} {end - DOWN / 2:g} {to_x:g} {end:g}"
            )
            parts.append(f'<path d="{path}" fill="none" stroke="#808890" stroke-width="1.5" marker-end="url(#tip)"/>\n')
    for name, (x, y) in place.items():
        box = f'x="{x - WIDTH / 2:g}" y="{y - HEIGHT / 2:g}" width="{WIDTH}" height="{HEIGHT}" rx="6" fill="#2f5d8a"'
        text = f'x="{x:g}" y="{y + 5:g}" text-anchor="middle" font-size="15" fill="#fff"'
        label = f"{CORE} (rust/)" if name == CORE else name
        parts.append(f"<rect {box}/>\n<text {text}>{label}</text>\n")
    return "".join(parts) + "</svg>\n"


def main() -> None:
    """Draw the picture, or check that it is current."""
    files = imports(modules())
    between = rooms(files)
    listed = re.findall(r"^- \*\*(\w+)\*\*", LIST.read_text(encoding="utf-8"), re.MULTILINE)
    if found := faults(files, between, listed):
        sys.exit("\n".join(found))
    drawn = picture(between)
    if sys.argv[1:] != ["--check"]:
        PICTURE.write_text(drawn, encoding="utf-8")
    elif not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn:
        sys.exit(f"{PICTURE.name} is not drawn from the imports of today: `python docs/draw_rooms.py` is needed")


if __name__ == "__main__":
    main()
