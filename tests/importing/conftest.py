"""A database with an old queue for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .ground import OLD_QUEUE, Move


@pytest.fixture
def move(database_dsn: str) -> Iterator[Move]:
    made = Move(database_dsn)
    made.say(OLD_QUEUE)
    yield made
    made.close()
