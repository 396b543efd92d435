"""The domain inside somebody's application, which has neither SQLAlchemy nor psycopg."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.source import TOP
from tests.test_docs import blocks

BLOCK = """
import sys
blocked = "alembic cattrs click psycopg rich sqlalchemy structlog uuid_utils".split()
sys.modules.update(dict.fromkeys(blocked))  # None makes every import of it fail
"""
LOADED = """
names = {name.split(".")[0] for name, module in sys.modules.items() if module is not None}
assert not names & set(blocked), names & set(blocked)
assert not [name for name in sys.modules if name.startswith(("leasebook.infra", "leasebook.proj"))]
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", f"{BLOCK}\n{code}\n{LOADED}"],
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.acceptance("E02")
def test_the_embedding_example_runs_with_the_drivers_blocked() -> None:
    with pytest.raises(AssertionError, match="psycopg"):
        run("import psycopg")
    told = run("from leasebook.examples.embed_domain import main\nmain()")
    assert "it was superseded by lease 4. Discard this result." in told
    assert told.endswith("done after 2 starts, 1 attempt spent\n")


@pytest.mark.acceptance("E02")
def test_the_embedding_page_runs_with_the_drivers_blocked() -> None:
    page = (TOP / "docs" / "embedding.md").read_text("utf-8")
    code = "\n".join(text for _, info, text in blocks(page) if info[:1] == ["python"])
    assert "change(" in code
    run(code)
