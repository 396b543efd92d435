"""The readers behind the rules see through the ways of writing a name."""

from __future__ import annotations

import ast

import pytest

from tests.support.source import imports, uses


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("import time\ntime.sleep(1)", "time.sleep"),
        ("import time as t\nt.sleep(1)", "time.sleep"),
        ("from time import sleep\nsleep(1)", "time.sleep"),
        ("from time import sleep as nap\nnap(1)", "time.sleep"),
        ("import datetime as dt\ndt.datetime.now()", "datetime.datetime.now"),
        ("from datetime import datetime\ndatetime.now()", "datetime.datetime.now"),
        ("import uuid\nfield(factory=uuid.uuid4)", "uuid.uuid4"),
        ("print('x')", "print"),
    ],
)
def test_uses_sees_through_aliases(source: str, name: str) -> None:
    assert name in {used for _, used in uses(ast.parse(source))}


def test_uses_leaves_methods_of_the_same_name_alone() -> None:
    source = "console.print('x')\njob.datetime.now()"
    assert {"print", "datetime.datetime.now"}.isdisjoint(u for _, u in uses(ast.parse(source)))


def test_imports_keeps_the_dots() -> None:
    source = "import a.b\nfrom ..c import d\nfrom . import e\ndef f():\n    import g"
    assert [name for _, name in imports(ast.parse(source))] == ["a.b", "..c", ".", "g"]
