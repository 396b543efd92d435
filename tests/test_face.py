"""The public face says the same to type checkers and to Python."""

from __future__ import annotations

import ast
from importlib import import_module
from importlib.metadata import version

import pytest

import leasebook
from tests.support.source import TOP, parse

FACE = parse(TOP / "__init__.py")
LAZY: dict[str, str] = vars(leasebook)["_LAZY"]


def test_type_checkers_see_what_python_loads() -> None:
    seen = {
        alias.asname or alias.name: node.module
        for guard in FACE.body
        if isinstance(guard, ast.If)
        for node in guard.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == LAZY
    assert set(leasebook.__all__) == {"__version__", *LAZY}


def test_every_name_is_there() -> None:
    for name, module in LAZY.items():
        assert getattr(leasebook, name) is getattr(import_module(module), name)
        assert name in dir(leasebook)


def test_version_is_the_installed_one() -> None:
    assert leasebook.__version__ == version("leasebook")


def test_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="'leasebook' has no attribute 'nothing'"):
        _ = vars(leasebook)["__getattr__"]("nothing")
