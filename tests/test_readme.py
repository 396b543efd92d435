"""README's examples, run as printed against a real database."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import psycopg
import pytest
from sqlalchemy import create_engine
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

from tests.support.source import TOP
from tests.support.workers import DEADLINE_SECONDS

README = (TOP / "README.md").read_text("utf-8")


class Base(DeclarativeBase):
    """The tables of README's application."""


class Page(Base):
    """The page that README's example adds."""

    __tablename__ = "page"
    path: Mapped[str] = mapped_column(primary_key=True)


def blocks(heading: str) -> list[tuple[str, str]]:
    """Language and text of the fenced blocks under a heading."""
    section = README.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^( *)```(\w+)[^\n]*\n(.*?)^ *```$", section, re.DOTALL | re.MULTILINE)
    return [(language, dedent(text)) for _, language, text in found]


def test_what_it_looks_like(database_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEASEBOOK_DSN", database_dsn)
    engine = create_engine(database_dsn.replace("postgresql:", "postgresql+psycopg:", 1))
    Base.metadata.create_all(engine)
    app = ModuleType("readme_app")
    monkeypatch.setitem(sys.modules, "readme_app", app)
    app.__dict__.update(engine=engine, Page=Page)
    code = next(text for language, text in blocks("What it looks like") if language == "python")
    exec(compile(code, "README.md", "exec"), app.__dict__)
    with Session(engine) as session:
        assert session.get(Page, "a.md") is not None
    engine.dispose()
    with psycopg.connect(database_dsn) as connection:
        items = connection.execute("select name, group_key, item::text from leasebook.group_inbox")
        assert items.fetchall() == [("sync_page", "a.md", '{"path":"a.md"}')]
    app.__dict__["book"].close()


def test_the_first_job_in_three_steps(empty_database_dsn: str, tmp_path: Path) -> None:
    steps = blocks("First job in three steps")
    assert [language for language, _ in steps] == ["python", "bash", "bash"]
    (tmp_path / "app.py").write_text(steps[0][1], "utf-8")
    script = "set -eu\n" + "".join(text for _, text in steps[1:])
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path, "LEASEBOOK_DSN": empty_database_dsn},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    assert "greeted" in done.stderr
    assert "who=Ada" in done.stderr
    assert ": greet" in done.stdout
    assert "done after" in done.stdout
