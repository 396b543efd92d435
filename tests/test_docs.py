"""The Python in README.md and docs/ runs as printed.

The blocks of one page share a namespace and run in order. A block fenced as `python no-run` is
only compiled; blocks in other languages are left alone.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.source import TOP, relative

PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^`]*)$")


def blocks(text: str) -> Iterator[tuple[int, list[str], str]]:
    """First line, words of the fence, and code of each fenced block."""
    opened: re.Match[str] | None = None
    start, code = 0, [""]
    for number, line in enumerate(text.splitlines(), 1):
        if opened is None:
            opened = FENCE.match(line)
            start, code = number + 1, []
        elif line.strip() == opened["ticks"]:
            yield start, opened["info"].split(), "\n".join(code) + "\n"
            opened = None
        else:
            code.append(line.removeprefix(opened["indent"]))
    assert opened is None, f"the block that starts at line {start} is never closed"


def run_page(text: str, name: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Compile every Python block, run those that may run; the number that ran."""
    module = ModuleType(re.sub(r"\W", "_", name))
    monkeypatch.setitem(sys.modules, module.__name__, module)
    ran = 0
    for start, info, code in blocks(text):
        if info[:1] != ["python"]:
            continue
        runs = "no-run" not in info
        # The blank lines let a traceback name the line of the page.
        flags = 0 if runs else ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiled = compile("\n" * (start - 1) + code, name, "exec", flags, dont_inherit=True)
        if runs:
            exec(compiled, module.__dict__)
            ran += 1
    return ran


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_page(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text("utf-8") if page.exists() else ""
    run_page(text, relative(page), monkeypatch)


def test_runner_shares_names_and_skips_what_is_marked(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "```python\nx = 1\n```\n```python no-run\nawait launch()\n```\n"
        "```bash\nexit 1\n```\n```python\nassert x == 1\n```\n"
    )
    assert run_page(text, "page.md", monkeypatch) == 2


def test_runner_names_the_line_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run_page("# Title\n\n```python\nx = 1\n1 / 0\n```\n", "page.md", monkeypatch)
    assert caught.traceback[-1].lineno + 1 == 5
    with pytest.raises(SyntaxError):
        run_page("```python no-run\nneither Python nor prose\n```\n", "page.md", monkeypatch)
