"""A yard for each test: workers on a fresh database; and stores for what needs no process."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from leasebook.infra.memory import MemoryDatabase, MemoryStore
from leasebook.infra.ports import Store
from leasebook.infra.postgres.store import PostgresStore
from tests.support.yard import Yard


@pytest.fixture
def yard(
    database_dsn: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Yard]:
    """Workers, gates and questions; afterwards the database checks every invariant."""
    monkeypatch.setenv("LEASEBOOK_DSN", database_dsn)
    made = Yard(database_dsn, tmp_path, request.node.name)
    yield made
    made.finish()


@pytest.fixture
def database() -> MemoryDatabase:
    """A database in memory, whose steps a test can break."""
    return MemoryDatabase(lambda: datetime.now(UTC))


@pytest.fixture(params=["memory", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """A store of either kind."""
    made: Store
    if request.param == "memory":
        made = MemoryStore.on(request.getfixturevalue("database"))
    else:
        made = PostgresStore(request.getfixturevalue("database_dsn"))
    yield made
    made.close()
