"""Fixtures for the application's side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .ground import App


@pytest.fixture
def app(database_dsn: str) -> Iterator[App]:
    """An application on a fresh, migrated database."""
    application = App(database_dsn)
    with application.book:
        yield application
