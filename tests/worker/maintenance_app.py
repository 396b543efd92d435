"""The tests' application with the built-in jobs."""

from __future__ import annotations

from tests.worker.app import book

built_in = book.maintenance()
