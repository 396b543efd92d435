"""domain/ is arithmetic on values: it imports little and reaches for nothing (E02)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.source import TOP, imports, modules, parse, relative, uses

pytestmark = pytest.mark.acceptance("E02")

ALLOWED = {
    "__future__",
    "attr",
    "attrs",
    "bisect",
    "collections",
    "collections.abc",
    "dataclasses",
    "datetime",
    "decimal",
    "enum",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "types",
    "typing",
    "uuid",
}

# Names inside allowed modules, and built-ins, that answer differently each time or touch the world.
FORBIDDEN = {
    "datetime.date.today",
    "datetime.datetime.now",
    "datetime.datetime.today",
    "datetime.datetime.utcnow",
    "hashlib.file_digest",
    "json.dump",
    "json.load",
    "uuid.getnode",
    "uuid.uuid1",
    "uuid.uuid4",
    "uuid.uuid6",
    "uuid.uuid7",
    "__import__",
    "breakpoint",
    "eval",
    "exec",
    "input",
    "open",
    "print",
}

TOP_LEVEL = ["domain", "infra", "migrations", "projections", "tests"]

BLOCKED_IMPORT = """
import importlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"sqlalchemy", "psycopg"}:
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Blocker())
import leasebook.domain
for module in pkgutil.walk_packages(leasebook.domain.__path__, "leasebook.domain."):
    importlib.import_module(module.name)
heavy = {"alembic", "asyncio", "cattrs", "click", "psycopg", "rich", "sqlalchemy", "structlog"}
loaded = {name for name in sys.modules if name in heavy or name.startswith("leasebook.infra")}
sys.exit(f"domain loaded {sorted(loaded)}" if loaded else 0)
"""


@pytest.mark.parametrize("path", modules("domain"), ids=relative)
def test_domain_imports_its_allow_list(path: Path) -> None:
    depth = len(path.parent.relative_to(TOP).parts)
    for line, name in imports(parse(path)):
        dots = len(name) - len(name.lstrip("."))
        inside = 0 < dots <= depth
        assert inside or name in ALLOWED, f"{relative(path)}:{line}: domain may not import {name}"


@pytest.mark.parametrize("path", modules("domain"), ids=relative)
def test_domain_has_no_clock_randomness_or_io(path: Path) -> None:
    for line, name in uses(parse(path)):
        assert name not in FORBIDDEN, (
            f"{relative(path)}:{line}: {name} is not for the domain;"
            " let the caller find the answer and pass it in as a fact"
        )


def test_domain_loads_without_sqlalchemy_and_psycopg() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BLOCKED_IMPORT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_top_level() -> None:
    missing = [name for name in TOP_LEVEL if not (TOP / name).is_dir()]
    missing += [n for n in ("pyproject.toml", "ARCHITECTURE.md") if not (TOP / n).is_file()]
    assert missing == []
