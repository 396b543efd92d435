"""What producers and askers give, and get, in a transaction of their own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Generic, TypeVar, overload
from uuid import UUID

from attrs import evolve

from ..domain.frozen import frozen
from ..domain.job import JobSpec
from ..domain.values import Json, OnConflict

C_co = TypeVar("C_co", covariant=True)


@frozen
class Order:
    """A job to be accepted in the caller's transaction, checked and complete but for its time.

    The store stamps ``at`` with the database's clock: ``spec.enqueued_at`` is ignored.  It may
    start at ``run_at``, or ``delay`` seconds after acceptance, never before it.  A spec with a
    group goes to the inbox as one item; its ``args`` are the item.  ``on_conflict`` says what is
    wanted when another job has ``spec.unique_key``.  The first order of an ``idempotency_key``
    names the job of all later ones.
    """

    spec: JobSpec
    run_at: datetime | None = None
    delay: float = 0.0
    on_conflict: OnConflict = OnConflict.REJECT
    idempotency_key: str | None = None


@frozen
class Alike(Sequence[Order]):
    """Orders that differ in nothing but the ids and the arguments of their jobs.

    ``pattern`` has what they share, and ``head`` is its document but for the arguments.  Each is
    made of it when it is asked for; who knows that they are alike checks and writes the pattern
    once and makes none.
    """

    pattern: Order
    ids: Sequence[UUID]
    args: Sequence[Json]
    head: Json

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, place: int) -> Order: ...
    @overload
    def __getitem__(self, place: slice) -> Alike: ...
    def __getitem__(self, place: int | slice) -> Order | Alike:
        if isinstance(place, slice):
            return Alike(self.pattern, self.ids[place], self.args[place], self.head)
        spec = evolve(self.pattern.spec, id=self.ids[place], args=self.args[place])
        return evolve(self.pattern, spec=spec)


@frozen
class Autocommit(Generic[C_co]):
    """A caller that has nothing else to write: an enqueue has committed when it returns.

    ``connection`` is a caller in autocommit mode with no transaction open: a psycopg connection, or
    one of SQLAlchemy's whose isolation level is AUTOCOMMIT, or a Session on such.  An enqueue is a
    transaction by itself, in one message to the server where it is one statement.  It raises
    CallerRefused for a connection that is in a transaction, or would begin one.
    """

    connection: C_co


@frozen
class Receipt:
    """What the caller gets for an enqueue: it holds once the caller's transaction commits.

    ``id`` is the job's id, None for an item of a group, whose job is made by a worker; then
    ``item_id`` is its number in the inbox.  Without ``created`` the job was there before: another
    one has the unique key and is kept or moved, or the request was made before.
    """

    id: UUID | None
    item_id: int | None
    xid: int
    created: bool = True


@frozen
class Standing:
    """What becomes of the work for a subject.

    ``alive``: some is queued, grouped, in the inbox, leased or waiting for a retry.  ``held``:
    some has failed and waits for an operator.
    """

    alive: bool
    held: bool
