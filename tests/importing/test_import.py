"""Importing what waits in an old queue: nothing lost, nothing twice, nothing changed."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from leasebook.infra.app.old_rows import job_id

from .ground import Move

FILL = """
insert into old_queue (task, payload, importance)
select case when n %% 3 = 0 then 'tidy' else 'shop.mail.send' end,
       case when n %% 3 = 0 then '{}' else pg_catalog.jsonb_build_object('to', 'n' || n) end, 0
  from generate_series(1, %s) as n
"""
CONTENTS = "select pg_catalog.md5(pg_catalog.string_agg(t::text, '|' order by id)) from old_queue t"


@pytest.mark.acceptance("A06", "Q27")
def test_every_row_becomes_one_job_however_often_it_is_run(move: Move) -> None:
    move.say(FILL, [2_500])
    before = move.say(CONTENTS)
    first = move.run()
    assert (first.imported, first.already, first.complete) == (2_500, 0, True)
    jobs = move.jobs()
    assert [row[0] for row in jobs[:3]] == ["send_mail", "send_mail", "tidy"]
    assert [row[1] for row in jobs if row[0] == "send_mail"][-1] == '{"to":"n2500","copies":1}'
    again = move.run()
    assert (again.imported, again.already, again.complete) == (0, 2_500, True)
    assert move.jobs() == jobs
    assert move.say(CONTENTS) == before
    assert [job_id("public.old_queue", f'["{n}"]') for n in range(1, 2_501)] == move.ids()
    assert all(each.version == 8 for each in move.ids())


@pytest.mark.acceptance("A06")
def test_a_dry_run_is_the_default_and_writes_nothing(move: Move) -> None:
    move.say("insert into old_queue (task, payload) values ('tidy', '{}'), ('unknown', '{}')")
    report = move.run(execute=False)
    assert (report.imported, len(report.aside)) == (1, 1)
    assert move.jobs() == []
    assert move.say("select 1 from leasebook.imported_rows") == []
    assert move.say("select 1 from leasebook.audit_log") == []
    assert move.run().imported == 1


@pytest.mark.acceptance("A06")
def test_due_at_the_import_or_at_the_own_time_if_that_is_later(move: Move) -> None:
    move.say(
        "insert into old_queue (task, payload, run_after) values"
        " ('tidy', '{}', null), ('tidy', '{}', now() - interval '3 days'),"
        " ('tidy', '{}', now() + interval '3 days')"
    )
    ((before,),) = move.say("select clock_timestamp()")
    move.run()
    at_once, late, later = (row[4] for row in move.jobs())
    assert before <= at_once == late < before + timedelta(minutes=1)
    assert timedelta(days=2.9) < later - before < timedelta(days=3.1)


@pytest.mark.acceptance("A06", "P06")
def test_a_row_becomes_what_its_job_type_is_here(move: Move) -> None:
    move.say("insert into old_queue (task, payload) values ('charge', '{}'), ('tidy', '{}')")
    assert move.run().imported == 2
    kept = move.say("select name, on_expired, format from leasebook.jobs order by seq")
    assert kept == [("charge", "abort", 2), ("tidy", None, 1)]


@pytest.mark.acceptance("A06", "Q27")
def test_what_is_ambiguous_is_set_aside_and_listed(move: Move) -> None:
    move.say(
        "insert into old_queue (task, payload, state, importance) values"
        " ('tidy', '{}', 'new', 0), ('tidi', '{}', 'new', 0),"
        """ ('shop.mail.send', '{"to": 7}', 'new', 0),"""
        """ ('shop.mail.send', '{"two": "x"}', 'new', 0),"""
        " (null, '{}', 'new', 0), ('tidy', '[1]', 'new', 0), ('tidy', '{}', 'running', 0),"
        " ('tidy', '{}', 'new', 3), ('tidy', '{}', 'done', 0), ('tidy', null, 'new', 0)"
    )
    report = move.run()
    assert (report.imported, report.finished) == (2, 1)
    seen = {each.key: each for each in report.aside}
    assert {key: each.reason for key, each in seen.items()} == {
        '["2"]': "unknown_name",
        '["3"]': "bad_arguments",
        '["4"]': "bad_arguments",
        '["5"]': "unknown_name",
        '["6"]': "bad_arguments",
        '["7"]': "half_finished",
        '["8"]': "bad_priority",
    }
    assert "perhaps 'tidy' was meant" in seen['["2"]'].seen
    assert "args.to" in seen['["3"]'].seen
    assert all(each.remedy for each in report.aside)
    assert len(move.audit("import_set_aside")) == 7
    assert not report.complete

    move.say(
        """update old_queue set task = 'tidy', payload = '{}', importance = 0, state = 'new'"""
    )
    again = move.run()
    assert (again.imported, again.already, again.complete) == (8, 2, True)
    assert len(move.audit("import_set_aside")) == 7
    assert [each["imported"] for each in move.audit("import_finished")] == [2, 8]


@pytest.mark.acceptance("A06")
def test_a_row_without_a_key_or_with_that_of_another_is_set_aside(move: Move) -> None:
    move.say("create table loose (id int, task text)")
    move.say("insert into loose values (1, 'tidy'), (2, 'tidy'), (2, 'tidy'), (null, 'tidy')")
    report = move.run('key = "id"\nname = "task"', name="loose")
    assert report.imported == 1
    assert sorted(each.reason for each in report.aside) == [
        "duplicate_key",
        "duplicate_key",
        "null_key",
    ]
    assert len({each.key for each in report.aside}) == 3


@pytest.mark.acceptance("A06")
def test_a_row_that_an_old_worker_holds_is_busy_and_taken_once_it_is_free(move: Move) -> None:
    move.say("insert into old_queue (task, payload) select 'tidy', '{}' from generate_series(1, 5)")
    with psycopg.connect(move.dsn) as worker:
        worker.execute("select id from old_queue where id in (2, 4) for update")
        report = move.run(batch_rows=2)
        assert report.imported == 3
        assert report.busy == ['["2"]', '["4"]']
        assert not report.complete
        assert move.run(execute=False).busy == report.busy
        # One is done with, as workers that delete their rows do it; the other is given back.
        worker.execute("delete from old_queue where id = 2")
        worker.commit()
    again = move.run()
    assert (again.imported, again.already, again.busy, again.complete) == (1, 3, [], True)
    assert len(move.ids()) == 4


@pytest.mark.acceptance("A06")
def test_a_row_that_changes_under_the_import_is_judged_as_it_is_now(move: Move) -> None:
    """Listed as waiting, then begun by an old worker before its batch came."""
    move.say("insert into old_queue (task, payload) select 'tidy', '{}' from generate_series(1, 4)")

    def begin() -> None:
        move.say("update old_queue set state = 'running' where id = 3")
        move.say("update old_queue set state = 'done' where id = 4")

    report = move.run(before_batch=begin)
    assert report.imported == 2
    assert [each.reason for each in report.aside] == ["half_finished"]
    assert report.finished == 1


@pytest.mark.acceptance("A06")
def test_items_of_a_group_arrive_in_the_inbox_once(move: Move) -> None:
    move.say("create table pages (id int primary key, path text, later timestamptz)")
    move.say("insert into pages values (1, 'a', null), (2, 'b', now() + interval '1 day')")
    mapping = """
name = { value = "sync_page" }
args = { path = "path" }
group_key = "path"
due = "later"
"""
    report = move.run(mapping, name="pages")
    assert report.imported == 1
    assert [each.reason for each in report.aside] == ["bad_run_at"]
    assert move.run(mapping, name="pages").already == 1
    assert move.say("select group_key, item::text from leasebook.group_inbox") == [
        ("a", '{"path":"a"}')
    ]


@pytest.mark.acceptance("A06")
def test_broken_off_in_the_middle_it_goes_on(move: Move) -> None:
    move.say(
        "insert into old_queue (task, payload) select 'tidy', '{}' from generate_series(1, 10)"
    )
    batches: list[int] = []

    def third_time_unlucky() -> None:
        batches.append(1)
        if len(batches) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        move.run(batch_rows=3, before_batch=third_time_unlucky)
    assert len(move.ids()) == 6
    report = move.run()
    assert (report.already, report.imported) == (6, 4)
    assert len(set(move.ids())) == 10
