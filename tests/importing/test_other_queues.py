"""Tables shaped as other queues shape them, with those queues' own ways of holding a row."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import psycopg
import pytest

from .ground import Move

PROCRASTINATE = """
create type procrastinate_job_status as enum
    ('todo', 'doing', 'succeeded', 'failed', 'cancelled', 'aborting', 'aborted');
create table procrastinate_jobs (
    id bigserial primary key,
    queue_name character varying(128) not null,
    task_name character varying(128) not null,
    priority integer default 0 not null,
    lock text,
    queueing_lock text,
    args jsonb default '{}' not null,
    status procrastinate_job_status default 'todo' not null,
    scheduled_at timestamp with time zone,
    attempts integer default 0 not null
);
insert into procrastinate_jobs (queue_name, task_name, priority, args, status, scheduled_at) values
    ('default', 'shop.tasks.send_mail', 0, '{"to": "a", "copies": 2}', 'todo', null),
    ('night', 'shop.tasks.tidy', -5, '{}', 'todo', '2100-01-01 00:00:00+01'),
    ('default', 'shop.tasks.tidy', 0, '{}', 'doing', null),
    ('default', 'shop.tasks.tidy', 0, '{}', 'succeeded', null),
    ('default', 'shop.tasks.tidy', 0, '{}', 'failed', null);
"""
PROCRASTINATE_MAP = """
where = "status = 'todo'"
finished = "status in ('succeeded', 'failed', 'cancelled', 'aborted')"
name = "task_name"
args = "args"
due = "scheduled_at"
priority = "priority"
queue = "queue_name"

[names]
"shop.tasks.send_mail" = "send_mail"
"shop.tasks.tidy" = "tidy"

[queues]
default = "mail"

[priorities]
"0" = 5
"*" = 2
"""
TAKE = """
update procrastinate_jobs set status = 'doing'
 where id = (select id from procrastinate_jobs where status = 'todo' order by id
              limit 1 for update skip locked)
"""

PGQUEUER = """
create type pgqueuer_status as enum
    ('queued', 'picked', 'successful', 'exception', 'canceled', 'deleted');
create table pgqueuer (
    id serial primary key,
    priority int not null,
    queue_manager_id uuid,
    created timestamp with time zone not null default now(),
    updated timestamp with time zone not null default now(),
    heartbeat timestamp with time zone not null default now(),
    execute_after timestamp with time zone not null default now(),
    status pgqueuer_status not null,
    entrypoint text not null,
    dedupe_key text,
    payload bytea
);
insert into pgqueuer (priority, status, entrypoint, payload) values
    (0, 'queued', 'send_mail', '{"to": "a"}'),
    (9, 'queued', 'send_mail', '\\x7b22746f223a2022c3bc227d'),
    (0, 'picked', 'send_mail', '{"to": "b"}'),
    (0, 'queued', 'send_mail', '\\xff00');
"""
PGQUEUER_MAP = """
where = "status = 'queued'"
name = "entrypoint"
args = "payload"
due = "execute_after"
order = ["created", "id"]
"""


@pytest.mark.acceptance("A06")
def test_procrastinate(move: Move) -> None:
    move.say(PROCRASTINATE)
    report = move.run(PROCRASTINATE_MAP, name="procrastinate_jobs")
    assert (report.imported, report.finished) == (2, 2)
    assert [(each.key, each.reason) for each in report.aside] == [('["3"]', "half_finished")]
    mail, tidy = move.jobs()
    assert (mail[0], json.loads(mail[1]), *mail[2:4]) == (
        "send_mail",
        {"to": "a", "copies": 2},
        "mail",
        5,
    )
    assert (tidy[0], *tidy[2:5]) == ("tidy", "night", 2, datetime(2099, 12, 31, 23, tzinfo=UTC))


@pytest.mark.acceptance("A06")
def test_procrastinate_with_a_worker_that_is_taking_a_row(move: Move) -> None:
    move.say(PROCRASTINATE)
    with psycopg.connect(move.dsn) as worker:
        worker.execute(TAKE)
        assert move.run(PROCRASTINATE_MAP, name="procrastinate_jobs").busy == ['["1"]']
        worker.commit()
    report = move.run(PROCRASTINATE_MAP, name="procrastinate_jobs")
    assert {each.key: each.reason for each in report.aside} == {
        '["1"]': "half_finished",
        '["3"]': "half_finished",
    }
    # The old worker failed and gave the row back.
    move.say("update procrastinate_jobs set status = 'todo' where id = 1")
    assert move.run(PROCRASTINATE_MAP, name="procrastinate_jobs").imported == 1


@pytest.mark.acceptance("A06")
def test_pgqueuer(move: Move) -> None:
    move.say(PGQUEUER)
    report = move.run(PGQUEUER_MAP, name="pgqueuer")
    assert report.imported == 2
    assert [json.loads(row[1])["to"] for row in move.jobs()] == ["a", "ü"]
    assert {each.key: each.reason for each in report.aside} == {
        '["3"]': "half_finished",
        '["4"]': "bad_arguments",
    }


@pytest.mark.acceptance("A06")
def test_odd_names_and_keys_of_two_columns(move: Move) -> None:
    move.say('create schema "Old-x"; create table "Old-x"."my ""50%"" queue" ('
             ' "the day" date, "No%%" uuid default gen_random_uuid(), "who?" text,'
             ' "when" timestamp, primary key ("the day", "No%%"))')  # fmt: skip
    move.say(
        'insert into "Old-x"."my ""50%"" queue" ("the day", "who?", "when") values'
        " ('2026-01-01', 'Ada 100%', '2100-07-01 12:00'), ('2026-01-02', 'Bob', null)"
    )
    mapping = """
where = '''"who?" like '%a 1%' -- a comment'''
name = { value = "send_mail" }
args = { to = "who?", copies = { value = 3 } }
due = "when"
timezone = "Europe/Berlin"
"""
    name = '"Old-x"."my ""50%"" queue"'
    report = move.run(mapping, name=name)
    assert report.imported == 1
    assert [each.reason for each in report.aside] == ["half_finished"]
    ((_, args, _, _, due, _),) = move.jobs()
    assert json.loads(args) == {"to": "Ada 100%", "copies": 3}
    assert due == datetime(2100, 7, 1, 10, tzinfo=UTC)
    assert move.run(mapping, name=name).already == 1


@pytest.mark.acceptance("A06")
def test_a_partitioned_table_and_times_as_numbers(move: Move) -> None:
    move.say("""
        create table parts (id bigint primary key, at bigint) partition by range (id);
        create table parts_1 partition of parts for values from (1) to (100);
        create table parts_2 partition of parts for values from (100) to (200);
        insert into parts values (1, 4102444800), (150, 0), (151, null);
    """)
    report = move.run('name = { value = "tidy" }\ndue = "at"', name="parts")
    assert (report.imported, report.complete) == (3, True)
    assert move.jobs()[0][4] == datetime(2100, 1, 1, tzinfo=UTC)
