"""Plans that ran: which indexes a statement used and how many rows it read."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from attrs import frozen
from psycopg import sql

from leasebook.infra.postgres.settings import Settings
from leasebook.infra.postgres.statements import frame


@frozen
class Scan:
    """One scan of a table: ``read`` rows came out of it or were thrown away by its filter."""

    kind: str
    table: str
    index: str | None
    read: int


def scans(
    connection: psycopg.Connection[Any], statement: str, params: Mapping[str, object]
) -> list[Scan]:
    """Prepare a statement, run it by its generic plan as a worker does, and tell what it read."""
    names = list(dict.fromkeys(re.findall(r"%\((\w+)\)s", statement)))
    text = re.sub(
        r"%\((\w+)\)s|%%",
        lambda found: "%" if found[0] == "%%" else f"${names.index(found[1]) + 1}",
        statement,
    )
    values = sql.SQL(", ").join([sql.Literal(params[name]) for name in names])
    connection.execute("deallocate all")
    connection.execute(f"prepare planned as {text}".encode())
    explain = sql.SQL("explain (analyze, format json) execute planned ({})").format(values)
    row = connection.execute(explain).fetchone()
    assert row is not None
    return list(_walk(row[0][0]["Plan"]))


@contextmanager
def begun(dsn: str) -> Generator[psycopg.Connection[Any]]:
    """A worker's transaction that is rolled back."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(frame.begin(Settings()).encode())
        yield connection
        connection.execute("rollback")


def assert_reads(found: list[Scan], **most: int) -> None:
    """Each index was used and read at most so many rows; no other was, and no table was walked."""
    read: dict[str, int] = {}
    for scan in found:
        assert scan.index is not None, scan
        read[scan.index] = read.get(scan.index, 0) + scan.read
    assert set(read) == set(most), found
    assert all(read[index] <= bound for index, bound in most.items()), found


def _walk(node: dict[str, Any]) -> Iterator[Scan]:
    if "Relation Name" in node and node["Node Type"].endswith("Scan"):
        loops = node["Actual Loops"]
        removed = node.get("Rows Removed by Filter", 0) + node.get(
            "Rows Removed by Index Recheck", 0
        )
        read = round((node["Actual Rows"] + removed) * loops)
        yield Scan(node["Node Type"], node["Relation Name"], node.get("Index Name"), read)
    for child in node.get("Plans", ()):
        yield from _walk(child)
