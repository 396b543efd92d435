"""An application whose queues and jobs have names that careless code cuts, folds or splits."""

from __future__ import annotations

from leasebook import Book, Group, Run

NAMES = (
    "q" * 48,
    "Mixed-Case",
    "mixed-case",
    "a.b",
    'with "quotes"',
    "it's",
    "%s {0} $1 ;--",
    "é" * 32,
    "x" * 62 + "a",
    "x" * 62 + "b",
    "x" * 63 + "a",
    "x" * 63 + "b",
    "日" * 23 + "y",
)

book = Book()


async def handler(run: Run, n: int = 0) -> int:
    return n


async def grouped(run: Run, items: list[int]) -> int:
    return len(items)


PLAIN = [book.job(name=name, queue=name)(handler) for name in NAMES]
GROUPED = [
    book.job(name=f"{name}+", queue=name, group=Group(window=0.1, max_hold=1))(grouped)
    for name in NAMES
]
