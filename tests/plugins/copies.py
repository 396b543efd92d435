"""Copies of the migrated database, made and dropped beside the tests that use them.

To copy a database takes as long as many a test does, most of it waiting for the disk: the next one
is made while a test runs.
"""

from __future__ import annotations

import secrets
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import psycopg
from psycopg import sql

#: Copies that are ready before they are asked for.
AHEAD = 1


class Copies:
    """Databases like ``template``, each for one test.  ``close`` drops those that nobody used."""

    def __init__(self, server_dsn: str, template: str) -> None:
        self._dsn = server_dsn
        self._template = template
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="copies")
        self._connection: psycopg.Connection | None = None
        self._made: deque[Future[str]] = deque()

    def take(self) -> str:
        """The name of a fresh copy."""
        while len(self._made) <= AHEAD:
            self._made.append(self._thread.submit(self._make))
        return self._made.popleft().result()

    def give_back(self, name: str) -> None:
        """Drop a copy, sooner or later, whoever is connected to it."""
        self._thread.submit(self._drop, name)

    def close(self) -> None:
        """Drop what is left, and wait for that."""
        for made in self._made:
            if not made.cancel():
                self.give_back(made.result())
        self._thread.shutdown()
        if self._connection is not None:
            self._connection.close()

    def _admin(self) -> psycopg.Connection:
        if self._connection is None:
            self._connection = psycopg.connect(self._dsn, autocommit=True)
        return self._connection

    def _make(self) -> str:
        name = f"leasebook_test_{secrets.token_hex(6)}"
        copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
        self._admin().execute(copy.format(sql.Identifier(name), sql.Identifier(self._template)))
        return name

    def _drop(self, name: str) -> None:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
        self._admin().execute(drop.format(sql.Identifier(name)))
