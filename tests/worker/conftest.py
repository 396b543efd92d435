"""A yard for each test: workers on a fresh database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.yard import Yard


@pytest.fixture
def yard(
    database_dsn: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Yard]:
    """Workers, gates and questions; at its end every invariant is checked."""
    monkeypatch.setenv("LEASEBOOK_DSN", database_dsn)
    made = Yard(database_dsn, tmp_path, request.node.name)
    yield made
    made.finish()
