"""What the page on deploying prints does what it says."""

from __future__ import annotations

import re
from secrets import token_hex

from psycopg.conninfo import make_conninfo

from leasebook.infra.worker.settings import WorkerSettings
from tests.support.schemas import role
from tests.support.source import TOP
from tests.support.yard import Yard
from tests.worker import app

PAGE = (TOP / "docs" / "deploying.md").read_text("utf-8")


def test_the_printed_grants_are_enough_for_a_worker(yard: Yard) -> None:
    (printed,) = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    name = f"leasebook_test_{token_hex(4)}"
    with role(yard.dsn, name):
        _, grants = printed.replace("leasebook_worker", name).split(";", 1)
        yard.sql(f"alter role {name} login")
        yard.sql(f"alter role {name} set search_path = leasebook, public")
        yard.sql(f"{grants}; grant all on effects to {name}")
        owner, yard.dsn = yard.dsn, make_conninfo(yard.dsn, user=name)
        with yard.caller() as caller:
            plain = app.quick.enqueue_many(caller, range(10))
            retried = app.listed.enqueue(caller)
            app.bulk.enqueue_many(caller, range(50), group_key=lambda item: "k")
        worker = yard.worker()
        assert yard.all_over(plain) == {"done": 10}
        assert yard.over(retried).outcome == "exhausted"
        assert worker.stop() == 0
        yard.dsn = owner
    assert not worker.told("store unavailable")


def test_every_grace_that_is_named_covers_a_whole_stop() -> None:
    settings = WorkerSettings()
    longest = settings.drain + settings.cancel + settings.settle + settings.farewell
    named = re.findall(r"(?:TimeoutStopSec=|GracePeriodSeconds: |stop_grace_period: )(\d+)", PAGE)
    assert len(named) == 3
    assert {int(each) for each in named} == {45}
    assert longest <= 45
