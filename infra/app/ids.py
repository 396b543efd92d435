"""Ids for jobs: UUIDv7, so that they are in order of time."""

from __future__ import annotations

from uuid import UUID

import uuid_utils


def new_id() -> UUID:
    """A new UUIDv7; those of one process only grow."""
    return UUID(int=uuid_utils.uuid7().int)
