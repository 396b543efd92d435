"""Enqueue: what becomes part of a job, and what is refused before anything is written."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from leasebook import InvalidValue, LeasebookError, Receipt
from leasebook.domain import Job, State
from leasebook.domain.limits import KEY_BYTES_MAX, NAME_BYTES_MAX
from leasebook.infra.app.errors import UnknownName
from leasebook.infra.ports import Claim

from .ground import NOTHING, App, PageChanged

LATER = datetime(2100, 1, 1, tzinfo=UTC)
PAGE = PageChanged("a.md")


def load(app: App, receipt: Receipt) -> Job:
    """The job of a receipt."""
    assert receipt.id is not None
    with app.book.store().transaction() as transaction:
        return transaction.load([receipt.id])[receipt.id]


@pytest.mark.acceptance("P03")
def test_options_are_part_of_the_job(app: App) -> None:
    with psycopg.connect(app.dsn) as connection:
        receipt = app.add.enqueue(
            connection,
            1,
            "y",
            queue="other",
            priority=9,
            run_at=LATER,
            label="label",
            owner="owner",
            subject="subject",
            expires_at=LATER + timedelta(days=1),
        )
    job = load(app, receipt)
    spec = job.spec
    assert (spec.name, spec.args) == ("add", '{"a":1,"b":"y"}')
    assert (spec.queue, spec.priority, job.due_at) == ("other", 9, LATER)
    assert (spec.label, spec.owner, spec.subject) == ("label", "owner", "subject")
    assert spec.expires_at == LATER + timedelta(days=1)
    assert spec.policy == app.add.policy
    assert (job.state, job.version) == (State.QUEUED, 1)


def test_defaults_come_from_the_job_type_and_the_handler(app: App) -> None:
    with psycopg.connect(app.dsn) as connection:
        plain = app.add.enqueue(connection, a=1)
        delayed = app.add.options(delay=timedelta(minutes=1)).enqueue(connection, 1, b="y")
    job, later = load(app, plain), load(app, delayed)
    assert (job.spec.queue, job.spec.priority, job.spec.args) == ("sums", 7, '{"a":1,"b":"x"}')
    assert job.due_at == job.at == job.spec.enqueued_at
    assert later.due_at - later.at == timedelta(minutes=1)


@pytest.mark.acceptance("P03")
def test_claim_order_is_priority_then_due_time_then_sequence(app: App) -> None:
    with psycopg.connect(app.dsn) as connection:
        past = datetime(2002, 1, 1, tzinfo=UTC)
        receipts = [
            app.add.enqueue(connection, 0, priority=1),
            app.add.enqueue(connection, 1, priority=9, run_at=past),
            app.add.enqueue(connection, 2, priority=9),
            app.add.enqueue(connection, 3, priority=5),
            app.add.enqueue(connection, 4, priority=9),
        ]
    wanted = Claim(("sums",), ("add",), 10, 0)
    with app.book.store().transaction() as transaction:
        claimed = [job.id for job in transaction.claim(wanted)]
    # A start in the past means at once, so the order of acceptance decides.
    assert claimed == [receipts[place].id for place in (1, 2, 4, 3, 0)]


@pytest.mark.acceptance("Q03")
def test_work_accepted_while_no_worker_runs_is_there_when_one_starts(app: App) -> None:
    with psycopg.connect(app.dsn) as connection:
        receipt = app.publish.enqueue(connection, PAGE)
        app.sync_page.enqueue(connection, PAGE, group_key="a.md")
    # Another process with its own book: nothing but the database is shared.
    later = App(app.dsn)
    with later.book.store().transaction() as transaction:
        (job,) = transaction.claim(Claim(("default",), tuple(later.book.jobs), 10, 0))
        assert job.id == receipt.id
        assert len(transaction.collectable(10)) == 1
    assert later.book.jobs["publish"].face.hints["page"] is PageChanged


def test_names_with_a_common_prefix_do_not_collide(app: App) -> None:
    first, second = "q" * 70 + "a", "q" * 70 + "b"
    odd = ("Mixed-Case", "a.b", "quo\"te'", "ä" * 64, "%s", "a b")
    with psycopg.connect(app.dsn) as connection:
        for number, queue in enumerate((first, second, *odd)):
            app.add.enqueue(connection, number, queue=queue)
    for number, queue in enumerate((first, second, *odd)):
        with app.book.store().transaction() as transaction:
            (job,) = transaction.claim(Claim((queue,), ("add",), 10, 0))
        assert (job.spec.queue, job.spec.args) == (queue, f'{{"a":{number},"b":"x"}}')


class Loose(str):
    """Equal to what is written otherwise."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self.lower() == other.lower()

    def __hash__(self) -> int:
        return hash(self.lower())


def test_keys_of_items_are_written_as_they_are_given(app: App) -> None:
    given = ["a.md", Loose("A.md"), Loose("A.MD"), "a.md"]
    with psycopg.connect(app.dsn) as connection:
        for key in given:
            app.sync_page.enqueue(connection, PageChanged("a.md"), group_key=key)
        rows = connection.execute("select group_key from leasebook.group_inbox order by id")
        assert [key for (key,) in rows.fetchall()] == ["a.md", "A.md", "A.MD", "a.md"]


@pytest.mark.acceptance("P01")
def test_by_name(app: App) -> None:
    with psycopg.connect(app.dsn) as connection:
        receipt = app.book.enqueue(connection, "publish", {"page": {"path": "a"}}, label="x")
        item = app.book.enqueue(connection, "sync_page", {"path": "a"}, group_key="a")
        with pytest.raises(UnknownName, match="'publish'"):
            app.book.enqueue(connection, "publihs", {"page": {"path": "a"}})
        with pytest.raises(InvalidValue, match=r"args\.page\.count: a str"):
            app.book.enqueue(connection, "publish", {"page": {"path": "a", "count": "1"}})
        with pytest.raises(InvalidValue, match=r"item\.count: a str"):
            app.book.enqueue(connection, "sync_page", {"path": "a", "count": "1"}, group_key="a")
    assert item.item_id is not None
    assert load(app, receipt).spec.label == "x"
    assert app.rows() == (1, 1, 1)


Bad = Callable[[Any, Any], object]


def adding(options: Mapping[str, Any]) -> Bad:
    """An enqueue of a single job with these options."""
    return lambda app, caller: app.add.enqueue(caller, 1, **options)


def grouping(options: Mapping[str, Any]) -> Bad:
    """An enqueue of an item with these options."""
    return lambda app, caller: app.sync_page.enqueue(caller, PAGE, **options)


def refused() -> Mapping[str, Bad]:
    """Enqueues that must be refused; each gets a caller with an open transaction."""
    bad: dict[str, Bad] = {}
    keys = {"empty": "", "blank": " \t", "NUL": "a\0", "10 kB": "k" * 10_000, "surrogate": "\ud800"}
    values: dict[str, Any] = {**keys, "not a text": 5, "bytes": b"k"}
    for name, value in values.items():
        for option in ("queue", "label", "owner", "subject"):
            bad[f"{option} {name}"] = adding({option: value})
        bad[f"group_key {name}"] = grouping({"group_key": value})
    options: dict[str, dict[str, Any]] = {
        "queue of 129 bytes": {"queue": "q" * (NAME_BYTES_MAX + 1)},
        "queue of 130 bytes in 65 letters": {"queue": "ä" * 65},
        "owner too long": {"owner": "o" * (KEY_BYTES_MAX + 1)},
        "queue None": {"queue": None},
        "priority 10": {"priority": 10},
        "priority -1": {"priority": -1},
        "priority True": {"priority": True},
        "priority 1.0": {"priority": 1.0},
        "naive run_at": {"run_at": datetime(2100, 1, 1)},
        "run_at as a text": {"run_at": "2100-01-01T00:00:00Z"},
        "run_at in year 9999": {"run_at": datetime.max.replace(tzinfo=UTC)},
        "naive expires_at": {"expires_at": datetime(2100, 1, 1)},
        "expired at birth": {"expires_at": datetime(2001, 1, 1, tzinfo=UTC)},
        "expires before its start": {"run_at": LATER, "expires_at": LATER},
        "negative delay": {"delay": -1},
        "negative timedelta": {"delay": timedelta(seconds=-1)},
        "delay NaN": {"delay": math.nan},
        "delay infinite": {"delay": math.inf},
        "delay True": {"delay": True},
        "delay as a text": {"delay": "1"},
        "run_at and delay": {"run_at": LATER, "delay": 1},
        "unknown option": {"prioriti": 1},
        "a key without a group": {"group_key": "k"},
    }
    for name, given in options.items():
        bad[name] = adding(given)
    grouped: dict[str, dict[str, Any]] = {
        "no group key": {},
        "group key None": {"group_key": None},
        "run_at for a group": {"group_key": "k", "run_at": LATER},
        "delay for a group": {"group_key": "k", "delay": 1},
        "expires_at for a group": {"group_key": "k", "expires_at": LATER},
    }
    for name, given in grouped.items():
        bad[name] = grouping(given)
    bad |= {
        "NUL in an argument": lambda app, to: app.publish.enqueue(to, PageChanged("a\0")),
        "NUL in an item": lambda app, to: app.sync_page.enqueue(
            to, PageChanged("a\0"), group_key="k"
        ),
        "surrogate": lambda app, to: app.publish.enqueue(to, PageChanged("\ud800")),
        "NaN": lambda app, to: app.publish.enqueue(to, PageChanged("a", score=math.nan)),
        "infinity": lambda app, to: app.anything.enqueue(to, [math.inf]),
        "2^53 + 1": lambda app, to: app.add.enqueue(to, 2**53 + 1),
        "naive datetime": lambda app, to: app.publish.enqueue(
            to, PageChanged("a", when=datetime(2026, 1, 1))
        ),
        "20 MB": lambda app, to: app.publish.enqueue(to, PageChanged("x" * 20_000_000)),
        "missing argument": lambda app, to: app.add.enqueue(to),
        "too many arguments": lambda app, to: app.add.enqueue(to, 1, "x", 3),
        "twice": lambda app, to: app.add.enqueue(to, 1, a=2),
        "unknown argument": lambda app, to: app.add.enqueue(to, 1, c=2),
        "two items": lambda app, to: app.sync_page.enqueue(to, PAGE, PAGE, group_key="k"),
        "the last of many": lambda app, to: app.add.enqueue_many(to, [(1,), (2,), ("3",)]),
        "many that are no tuples": lambda app, to: app.add.enqueue_many(to, [1]),
        "an item of another class": lambda app, to: app.sync_page.enqueue(
            to,
            {"path": "a"},
            group_key="k",
        ),
        "unknown name": lambda app, to: app.book.enqueue(to, "nothing", {}),
        "no dict": lambda app, to: app.book.enqueue(to, "add", [1]),
    }
    return bad


@pytest.mark.acceptance("P01")
@pytest.mark.case("C10", "C42", "C43")
def test_bad_input_writes_nothing(app: App, subtests: pytest.Subtests) -> None:
    for name, bad in refused().items():
        with subtests.test(name), psycopg.connect(app.dsn) as connection:
            with pytest.raises(LeasebookError) as caught:
                bad(app, connection)
            assert caught.value.code in ("invalid_value", "unknown_name")
            assert len(str(caught.value)) < 500
            # The caller's transaction is whole, and what it then commits has nothing of this.
            assert connection.execute("select 1").fetchone() == (1,)
    assert app.rows() == NOTHING


def test_an_unknown_option_is_told_the_nearest(app: App) -> None:
    with psycopg.connect(app.dsn) as connection:
        with pytest.raises(InvalidValue, match="Perhaps 'priority' was meant"):
            app.add.enqueue(connection, 1, prioriti=1)  # type: ignore[call-overload]
        with pytest.raises(InvalidValue, match="Perhaps 'queue' was meant"):
            app.add.options(queu="x")  # type: ignore[call-arg]
        with pytest.raises(InvalidValue, match="Perhaps 'delay' was meant"):
            app.book.enqueue(connection, "add", {"a": 1}, dleay=1)
    assert app.rows() == NOTHING
