"""The producers' side: a caller's transaction in which orders are accepted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import TracebackType
from typing import Self
from uuid import UUID

from attrs import evolve as replace

from ...domain.commands import Enqueue
from ...domain.decide import change
from ...domain.job import Job, JobSpec
from ...domain.ordering import check_keys, line_up, unknown_parent
from ..caller_ports import Order, Receipt
from ..documents import digest, encode_spec
from .keys import Plan, plan
from .picking import group_of
from .statement import statement
from .storable import check_json, check_text
from .tables import StoredItem, StoredRequest
from .transaction import MemoryTransaction


class MemoryProducer(MemoryTransaction):
    """A caller's transaction: commit it, roll it back, or use it as a context that does either.

    Orders are visible to workers once it has committed, and a rollback leaves no trace of them.
    """

    @statement
    def accept(self, orders: Sequence[Order]) -> list[Receipt]:
        """Accept jobs, and items of groups, stamped with the database's time, in order.

        Raises DataRefused for what PostgreSQL could not store, and the domain's errors for an
        order that contradicts itself or whose key is taken.
        """
        return self._accept(tuple(orders), self.session.read_time())

    @statement
    def accept_at(self, orders: Sequence[Order], at: datetime) -> list[Receipt]:
        """``accept`` with a stamp of one's own, for the replay of a history."""
        return self._accept(orders, at)

    def commit(self) -> None:
        """Make everything visible."""
        self.session.commit()

    def rollback(self) -> None:
        """Undo everything."""
        self.session.rollback()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.commit()
        else:
            self.rollback()

    def _accept(self, orders: Sequence[Order], stamp: datetime) -> list[Receipt]:
        # All of them are decided before the first is written: an error leaves nothing behind.
        births = {
            place: change(None, _command(order, stamp))
            for place, order in enumerate(orders)
            if order.spec.group is None
        }
        check_keys([order.spec for order in orders])
        for parent in (order.spec.after for order in orders):
            if parent is not None and not self._was_there(parent):
                raise unknown_parent(parent)
        made = plan(self.session, orders, births, lambda order: _command(order, stamp))
        self._line_up(orders, made, stamp)
        receipts = {
            place: Receipt(job_id, None, self.xid, created=False)
            for place, job_id in made.standing.items()
        }
        for place, order in enumerate(orders):
            if place in made.births:
                self.write(made.births[place])
                receipts[place] = Receipt(made.births[place].after.id, None, self.xid)
            elif order.spec.group is not None:
                receipts[place] = self._accept_item(order.spec, stamp)
        for change_ in made.births.values():
            self._mark(change_.after)
        for moved in made.moves.values():
            self.write(moved)
        self._remember(orders, made, receipts)
        return [receipts[place] for place in range(len(orders))]

    def _was_there(self, job_id: UUID) -> bool:
        """Whether there is such a job, or was before it was pruned."""
        session = self.session
        return session.events.get(job_id) is not None or session.summaries.get(job_id) is not None

    def _line_up(self, orders: Sequence[Order], made: Plan, stamp: datetime) -> None:
        """Share the locks of the ordering keys; those who come behind others wait from birth."""
        for key in sorted({each.spec.ordering_key or "" for each in orders} - {""}):
            self.session.lock("order", key, shared=True)
        places = sorted(made.births)
        for place, behind in zip(
            places, line_up([orders[place].spec for place in places]), strict=True
        ):
            if behind is not None:
                command = replace(_command(orders[place], stamp), behind=behind)
                made.births[place] = change(None, command)

    def _mark(self, job: Job) -> None:
        """Tell the job that this one is born behind that somebody waits for it."""
        if job.blocked_by is not None:
            row = self.session.jobs.get(job.blocked_by)
            assert row is not None, "it was born in the same breath"
            self.session.jobs.put(job.blocked_by, row._replace(has_waiter=True))

    def _remember(self, orders: Sequence[Order], made: Plan, receipts: dict[int, Receipt]) -> None:
        for key, place in made.requests.items():
            check_text("key", key)
            job_id = receipts[place].id
            assert job_id is not None
            self.session.requests.put(key, StoredRequest(job_id, digest(orders[place].spec)))
        for place, first in made.twins.items():
            receipts[place] = replace(receipts[first], created=False)

    def _accept_item(self, spec: JobSpec, at: datetime) -> Receipt:
        session = self.session
        key = group_of(spec)
        document = encode_spec(replace(spec, args="null"))
        for column, text in zip(("queue", "name", "group_key"), key, strict=True):
            check_text(column, text)
        check_json("item", spec.args)
        check_text("spec", document)
        tables = session.hub.tables
        number = next(tables.item_ids)
        sequence = None if spec.ordering_key is None else next(tables.event_ids)
        item = StoredItem(number, at, key, spec.args, document, spec.ordering_key, sequence)
        session.inbox.put(number, item)
        return Receipt(None, number, self.xid)


def _command(order: Order, at: datetime) -> Enqueue:
    """What the domain is asked for a single job that is accepted at ``at``."""
    earliest = at + timedelta(seconds=order.delay)
    run_at = earliest if order.run_at is None else max(earliest, order.run_at)
    return Enqueue(at, replace(order.spec, enqueued_at=at), run_at)
