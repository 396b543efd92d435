"""Numbers that grow for years have room to."""

from __future__ import annotations

from uuid import UUID

import psycopg
import pytest

LAST_INT4 = 2**31 - 1

INSERTS = {
    "job_events": "insert into leasebook.job_events (job_id, version, at, kind, lease)"
    " values (%(job)s, %(number)s, clock_timestamp(), 'leased.v1', %(number)s) returning event_id",
    "group_inbox": "insert into leasebook.group_inbox (queue, name, group_key, item, spec)"
    " values ('q', 'n', 'k', '{}', '{}') returning id",
    "audit_log": "insert into leasebook.audit_log (kind, detail)"
    " values ('worker_started', '{}') returning id",
}


@pytest.mark.case("C26")
@pytest.mark.unchecked("writes rows by hand")
def test_every_sequence_passes_the_end_of_int4(database_dsn: str) -> None:
    with psycopg.connect(database_dsn) as connection:
        sequences = connection.execute(
            "select s.oid, t.relname, q.seqcache"
            " from pg_class s join pg_sequence q on q.seqrelid = s.oid"
            " join pg_depend d on d.objid = s.oid and d.deptype = 'i'"
            " join pg_class t on t.oid = d.refobjid"
            " where s.relnamespace = 'leasebook'::regnamespace"
        ).fetchall()
        assert {table for _, table, _ in sequences} == set(INSERTS)
        assert {cache for _, _, cache in sequences} == {1}
        for sequence, _, _ in sequences:
            connection.execute("select setval(%s::oid::regclass, %s)", (sequence, LAST_INT4 - 1))
        for insert in INSERTS.values():
            numbers: list[int] = []
            for number in range(LAST_INT4, LAST_INT4 + 3):
                parameters = {"job": UUID(int=1), "number": number}
                row = connection.execute(insert.encode(), parameters).fetchone()
                assert row is not None
                numbers.append(row[0])
            assert numbers == [LAST_INT4, LAST_INT4 + 1, LAST_INT4 + 2]


@pytest.mark.case("C26")
def test_no_column_and_no_sequence_is_int4(database_dsn: str) -> None:
    with psycopg.connect(database_dsn) as connection:
        narrow = connection.execute(
            "select a.attrelid::regclass::text, a.attname from pg_attribute a"
            " join pg_class c on c.oid = a.attrelid"
            " where c.relnamespace = 'leasebook'::regnamespace and c.relkind = 'r'"
            " and a.attnum > 0 and a.atttypid in ('int4'::regtype, 'int4[]'::regtype)"
            " union all"
            " select seqrelid::regclass::text, 'sequence' from pg_sequence"
            " join pg_class c on c.oid = seqrelid"
            " where c.relnamespace = 'leasebook'::regnamespace and seqtypid <> 'int8'::regtype"
        ).fetchall()
        assert narrow == []
