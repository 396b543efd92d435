"""What a worker and its children need not import: each start would pay for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from leasebook.infra.worker.build import HAND, HEART

#: What others of this package need; asyncio and the like come with the driver.
FOREIGN = [
    "alembic",
    "cattrs",
    "click",
    "multiprocessing",
    "rich",
    "sqlalchemy",
    "structlog",
    "uuid_utils",
]
WORKER = "leasebook.infra.cli.worker"
PRODUCER = "leasebook.infra.app.book"

LOADED = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*sys.modules)
"""

#: What the heartbeat child has of the worker: it runs, settles and starts nothing.
BEATING = {
    "evidence",
    "expiry",
    "heart",
    "heart_fork",
    "heart_process",
    "heart_thread",
    "logs",
    "order",
}


def loaded_by(module: str) -> set[str]:
    """The modules that a fresh process has when it has imported this one."""
    answer = subprocess.run(
        [sys.executable, "-c", LOADED, module], capture_output=True, text=True, check=True
    )
    return set(answer.stdout.split())


def test_the_heartbeat_child_imports_its_store_and_its_rules() -> None:
    loaded = loaded_by(HEART)
    assert "leasebook.infra.postgres.store" in loaded, "it has been looked at"
    assert loaded.isdisjoint(FOREIGN)
    assert PRODUCER not in loaded
    above = "leasebook.infra.worker."
    worker = {name.removeprefix(above) for name in loaded if name.startswith(above)}
    assert worker == {*BEATING, "settings"}


@pytest.mark.parametrize(
    ("module", "not_yet"),
    [
        (HAND, {"alembic", "click", "psycopg", "rich", "sqlalchemy", "structlog"}),
        (WORKER, {"alembic", "rich", "sqlalchemy", "structlog"}),
        (PRODUCER, {"alembic", "click", "multiprocessing", "psycopg", "sqlalchemy", "structlog"}),
    ],
)
def test_others_import_the_rest_when_they_use_it(module: str, not_yet: set[str]) -> None:
    assert loaded_by(module).isdisjoint(not_yet)
