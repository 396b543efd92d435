"""Reads source text for the tests that hold the rules of the house."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TOP = Path(__file__).parent.parent.parent
PARTS = sorted(init.parent.name for init in TOP.glob("*/__init__.py"))


def modules(*folders: str) -> list[Path]:
    return sorted(path for folder in folders for path in (TOP / folder).rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(TOP).as_posix()


def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"), relative(path))


def imports(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and module of every import; a relative one keeps its dots."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def uses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Line and full dotted name of everything used, import aliases resolved.

    After `from time import sleep as nap`, `nap` is reported as `time.sleep`; a name that was not
    imported, such as `print`, is reported as it stands.
    """
    aliases = dict(_aliases(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and (name := _dotted(node)):
            first, dot, rest = name.partition(".")
            yield node.lineno, aliases.get(first, first) + dot + rest


def _aliases(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    yield alias.asname, alias.name
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr) -> str | None:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (owner := _dotted(node.value)):
        return f"{owner}.{node.attr}"
    return None
