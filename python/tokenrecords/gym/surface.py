"""What a module offers, read from its text without importing it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field


@dataclass
class Surface:
    """Constants, classes and functions of a module, each as the text that declares it.

    Attributes:
        declared: By dotted name: the value of a constant or an enum's member, annotation and default of a field,
            the bases of a class, the signature of a function. None for a value that is computed.
    """

    declared: dict[str, str | None] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Surface:
        """The surface of a module's text.

        Raises:
            SyntaxError: It is not Python.
        """
        surface = cls()
        surface._read(ast.parse(text).body, "")
        return surface

    def differences(self, known: Surface, optional: frozenset[str]) -> list[str]:
        """What differs from the surface that is known, in words; optional names may be missing."""
        found = []
        for name in sorted(self.declared.keys() | known.declared.keys()):
            if name not in self.declared:
                if name not in optional:
                    found.append(f"{name} is missing")
            elif name not in known.declared:
                if not name.rpartition(".")[2].startswith("_"):
                    found.append(f"{name} is unknown")
            elif self.declared[name] != known.declared[name]:
                found.append(f"{name} is `{self.declared[name]}`, not `{known.declared[name]}`")
        return found

    def _read(self, body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            match node:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    if prefix and node.name.startswith("_") and not _validates(node):
                        continue
                    self.declared[prefix + node.name] = _signature(node)
                case ast.ClassDef():
                    self.declared[prefix + node.name] = ", ".join(map(ast.unparse, node.bases))
                    self._read(node.body, f"{prefix}{node.name}.")
                case ast.AnnAssign(target=ast.Name(name)):
                    default = "" if node.value is None else f" = {ast.unparse(node.value)}"
                    self.declared[prefix + name] = ast.unparse(node.annotation) + default
                case ast.Assign(targets=[ast.Name(name)]):
                    self.declared[prefix + name] = _literal(node.value)


def _validates(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("validator" in ast.unparse(decorator) for decorator in node.decorator_list)


def _signature(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    returned = "" if node.returns is None else f" -> {ast.unparse(node.returns)}"
    return f"{kind}({ast.unparse(node.args)}){returned}"


def _literal(value: ast.expr) -> str | None:
    try:
        return repr(ast.literal_eval(value))
    except ValueError:  # computed, or a call such as pydantic's ConfigDict
        return ast.unparse(value) if isinstance(value, ast.Call) and ast.unparse(value.func) == "ConfigDict" else None
