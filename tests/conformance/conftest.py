"""Each test of this folder runs on both stores, and leaves a log that the checker accepts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from leasebook.infra.ports import Store

from .ground import Ground, assert_consistent
from .memory_ground import MemoryGround
from .postgres_ground import PostgresGround


@pytest.fixture(params=["memory", "postgres"])
def ground(request: pytest.FixtureRequest) -> Iterator[Ground]:
    """A database of its own for the test, in memory or in PostgreSQL."""
    made: Ground
    if request.param == "memory":
        made = MemoryGround()
    else:
        made = request.getfixturevalue("postgres_ground")
    yield made
    assert_consistent(made)


@pytest.fixture
def postgres_ground(database_dsn: str) -> Iterator[Ground]:
    """A fresh, migrated database in PostgreSQL."""
    made = PostgresGround(database_dsn, "leasebook")
    yield made
    made.close()


@pytest.fixture
def store(ground: Ground) -> Store:
    """One handle on the database under test."""
    return ground.store()


@pytest.fixture
def other(ground: Ground) -> Store:
    """A second handle on the same database."""
    return ground.store()
