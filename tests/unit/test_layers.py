"""Imports point down the layers of docs/architecture.md only, also those inside functions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "kaigen"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("kaigen.system", "kaigen"),
    ("kaigen.secret_scan", "kaigen.diagnostics", "kaigen.yaml"),
    ("kaigen.catalog",),
    ("kaigen.kinds",),
    ("kaigen.sizing",),
    ("kaigen.config", "kaigen.environments"),
    ("kaigen.dialects",),
    ("kaigen.compile",),
    ("kaigen.check",),
    ("kaigen.emit",),
    ("kaigen.gitops",),
    ("kaigen.output",),
    ("kaigen.git",),
    ("kaigen.diff",),
    ("kaigen.extend",),
    ("kaigen.pipeline", "kaigen.secrets"),
    ("kaigen.explain",),
    ("kaigen.plan",),
    ("kaigen.promote",),
    ("kaigen.graph",),
    ("kaigen.publish",),
    ("kaigen.scaffold",),
    ("kaigen.cli", "kaigen.__main__"),
)
"""From the bottom to the top. A module may import from its own layer and from those before it."""

EXCEPTIONS = {
    ("kaigen.config.file", "kaigen.check"): "to be removed",
    ("kaigen.config.file", "kaigen.emit.values"): "to be removed",
    ("kaigen.output.tree", "kaigen.diff.unified"): "to be removed",
    ("kaigen.promote.promotion", "kaigen.publish.sbom"): "to be removed",
    ("kaigen", "kaigen.pipeline.run"): "the library's front door: names looked up when they are first used",
}
"""Imports that point up, and why they may."""


def layer(module: str) -> int:
    """The layer of a module: that of the longest name in the table that it begins with."""
    found = [
        (len(name), height)
        for height, names in enumerate(LAYERS)
        for name in names
        if module == name or (name != "kaigen" and module.startswith(f"{name}."))
    ]
    assert found, f"{module} is in no layer: name it in LAYERS and in docs/architecture.md"
    return max(found)[1]


def modules() -> dict[str, Path]:
    """Every module of the package by its name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(tree: ast.AST) -> Iterator[str]:
    """The names of kaigen's modules that a module imports when it runs."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                yield from imports(other)
            continue
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports name the whole path"
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else str(node.module)
        yield from imports(node)


def upward() -> dict[tuple[str, str], list[str]]:
    """Imports that point up: importing and imported module, and the lines' modules."""
    found: dict[tuple[str, str], list[str]] = {}
    for module, path in MODULES.items():
        for wanted in imports(ast.parse(path.read_text(encoding="utf-8"))):
            if wanted.split(".")[0] == "kaigen" and wanted != "kaigen" and layer(wanted) > layer(module):
                found.setdefault((module, wanted), []).append(module)
    return found


def test_imports_point_down() -> None:
    wrong = sorted(
        f"{module} imports {wanted}" for module, wanted in upward() if (module, wanted) not in EXCEPTIONS
    )
    assert wrong == []


def test_every_exception_is_needed() -> None:
    front = {(module, home) for module, home in EXCEPTIONS if module == "kaigen"}
    assert set(EXCEPTIONS) - front <= set(upward())
    text = (PACKAGE / "__init__.py").read_text(encoding="utf-8")
    assert all(f'"{home}"' in text for _, home in front)


def test_no_two_modules_import_each_other_when_they_load() -> None:
    graph = {
        module: {
            wanted
            for wanted in _at_load(ast.parse(path.read_text(encoding="utf-8")))
            if wanted in MODULES and wanted != module
        }
        for module, path in MODULES.items()
    }
    done: set[str] = set()

    def visit(module: str, way: tuple[str, ...]) -> None:
        assert module not in way, " imports ".join((*way, module))
        if module not in done:
            for wanted in sorted(graph[module]):
                visit(wanted, (*way, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def _at_load(tree: ast.Module) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from imports(ast.Module([node], []))


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("from kaigen.cli import main", ["kaigen.cli.main"]),
        ("import kaigen.pipeline.run", ["kaigen.pipeline.run"]),
        ("def f():\n    from kaigen.pipeline.run import render", ["kaigen.pipeline.run"]),
        ("if TYPE_CHECKING:\n    from kaigen.pipeline.run import render", []),
        (
            "class A:\n    def f(self):\n        if x:\n            import kaigen.pipeline.run",
            ["kaigen.pipeline.run"],
        ),
    ],
)
def test_imports_are_found_wherever_they_stand(code: str, found: list[str]) -> None:
    assert list(imports(ast.parse(code))) == found
