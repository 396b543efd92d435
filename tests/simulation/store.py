"""The server between its clients: every statement is a step where turns change and faults strike.

A transaction is begun, used and ended by the real in-memory store.  What is added here is a
connection: it can be cut at any statement, its answer can be lost, and a commit that is on its way
when its client goes can still go through later.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from leasebook.domain import Change
from leasebook.domain.events import ItemsJoined
from leasebook.infra.memory import MemoryDatabase, MemoryStore, MemoryTransaction
from leasebook.infra.memory.locks import WouldBlock
from leasebook.infra.memory.session import COMMITTED, CRASHED, Session
from leasebook.infra.ports import DataRefused, StoreUnavailable

from .profile import Profile
from .scheduler import Actor, Killed, Process, Scheduler

LOCK_TIMEOUT_SECONDS = 0.5
#: After this long in a transaction without a word a worker's connection is cut.
IDLE_TIMEOUT_SECONDS = 1.0
GHOST_SECONDS_MAX = 0.8
SLOW_SECONDS_MAX = 0.4
INBOX_REFUSED = "an item is more than an index can hold"


class Connection:
    """An open transaction.  ``actor`` is its client, None when the server has lost it."""

    def __init__(self, actor: Actor | None, session: Session) -> None:
        self.actor = actor
        self.session = session
        self.lost = False
        self.waiters: list[Actor] = []


class Server:
    """Every open transaction, and what may happen to it."""

    def __init__(self, database: MemoryDatabase, scheduler: Scheduler, profile: Profile) -> None:
        self.database = database
        self.scheduler = scheduler
        self.profile = profile
        self.down = False
        self.open: dict[int, Connection] = {}
        self.commits: dict[int, int] = {}
        """Which transactions were committed, by number, and in which order."""
        self.times: dict[int, float] = {}
        """When they were."""
        self.on_cut: Callable[[Actor, str], None] = lambda actor, why: None
        self._waits: dict[Actor, Actor | None] = {}
        database.on_step(self.step)
        database.on_block(self.block)

    def step(self, name: str) -> None:
        """One step of the current actor's transaction.  May raise StoreUnavailable."""
        scheduler = self.scheduler
        actor = scheduler.current
        if actor is None:
            return
        if name == "committed":
            self._note_commits()
        profile = self.profile
        scheduler.tell(name)
        if profile.step_faults:
            self._strike(actor, name)
        scheduler.pause()
        if self.down:
            raise StoreUnavailable("the server is down")

    def _strike(self, actor: Actor, name: str) -> None:
        profile, scheduler = self.profile, self.scheduler
        if profile.strikes("process killed at step"):
            actor.process.dying = True
        if name == "committed":
            if profile.strikes("answer lost"):
                self._cut(actor, "answer lost")
        elif name == "commit":
            if profile.strikes("cut before commit"):
                self._cut(actor, "cut before commit")
        elif profile.strikes("cut at statement"):
            self._cut(actor, f"cut at {name}")
        if profile.strikes("slow statement"):
            scheduler.sleep(scheduler.chance.random() * SLOW_SECONDS_MAX)

    def _cut(self, actor: Actor, why: str) -> None:
        self.scheduler.tell(why)
        self.on_cut(actor, why)
        raise StoreUnavailable(why)

    def block(self, block: WouldBlock) -> None:
        """A statement waits for another transaction, in virtual time."""
        scheduler, actor = self.scheduler, self.scheduler.current
        assert actor is not None, str(block)
        holder = self.open.get(block.holder)
        if holder is None:  # It is on its way out.
            scheduler.sleep(0.001)
            return
        if self._circle(actor, holder.actor):
            self.profile.fired["(deadlock)"] += 1
            raise StoreUnavailable(f"deadlock: {block}")
        scheduler.tell(f"waits for transaction {block.holder}")
        self.profile.fired["(waited for a lock)"] += 1
        holder.waiters.append(actor)
        self._waits[actor] = holder.actor
        try:
            woken = scheduler.wait(LOCK_TIMEOUT_SECONDS)
        finally:
            del self._waits[actor]
        if not woken and self.open.get(block.holder) is holder:
            holder.waiters.remove(actor)
            self.profile.fired["(lock time-out)"] += 1
            raise StoreUnavailable(f"lock time-out: {block}")

    def _circle(self, actor: Actor, holder: Actor | None) -> bool:
        while holder is not None:
            if holder is actor:
                return True
            holder = self._waits.get(holder)
        return False

    def begun(self, session: Session) -> Connection:
        """A transaction of the current actor."""
        connection = Connection(self.scheduler.current, session)
        self.open[session.owner.xid] = connection
        return connection

    def commit(self, connection: Connection) -> None:
        """Commit, unless the commit is still on its way when its client is cut off or dies."""
        actor, session = connection.actor, connection.session
        if actor is not None and self.profile.step_faults:
            if self.profile.strikes("commit in flight"):
                self.later(connection, session.commit)
                self._cut(actor, "commit in flight")
            if self.profile.strikes("process killed at step"):
                self.later(connection, session.commit)
                actor.process.dying = True
                self.scheduler.pause()
        session.commit()

    def later(self, connection: Connection, act: Callable[[], None]) -> None:
        """The server ends a transaction whose client it has lost, a little later."""
        connection.actor, connection.lost = None, True

        def end() -> None:
            if connection.session.ended is None:
                act()
                self.ended(connection)

        self.scheduler.after(self.scheduler.chance.random() * GHOST_SECONDS_MAX, end)

    def ended(self, connection: Connection) -> None:
        """Note how it ended, and wake who waited for it."""
        self._note_commits()
        self.open.pop(connection.session.owner.xid, None)
        for actor in connection.waiters:
            self.scheduler.wake(actor)
        connection.waiters.clear()

    def _note_commits(self) -> None:
        for xid, connection in self.open.items():
            if connection.session.ended == COMMITTED and xid not in self.commits:
                self.commits[xid] = len(self.commits) + 1
                self.times[xid] = self.scheduler.now

    def stop(self) -> None:
        """The server dies: what is open is rolled back, and nobody gets an answer."""
        self.down = True
        for connection in list(self.open.values()):
            connection.session.rollback(CRASHED)
            self.ended(connection)

    def idle(self, process: Process) -> None:
        """Cut what a frozen process holds open, once it has been silent for too long."""
        for connection in list(self.open.values()):
            if connection.actor is not None and connection.actor.process is process:
                self.scheduler.after(IDLE_TIMEOUT_SECONDS, _rollback(self, connection, process))

    def killed(self, connection: Connection) -> None:
        """The client was killed: its transaction ends when the server notices."""
        if connection.session.ended is None and self.scheduler.chance.random() < 0.3:
            self.later(connection, connection.session.rollback)

    @contextmanager
    def transaction(self) -> Generator[Connection]:
        """Begin; commit when the block ends, roll back when it raises."""
        connection = self.begun(Session(self.database.hub))
        try:
            yield connection
            self.commit(connection)
        except Killed:
            if not connection.lost:
                self.killed(connection)
            raise
        finally:
            if not connection.lost:
                connection.session.rollback()
                self.ended(connection)


class SimTransaction(MemoryTransaction):
    """A transaction of a store that now and then cannot hold what was made of the inbox."""

    def __init__(self, session: Session, profile: Profile) -> None:
        super().__init__(session)
        self._profile = profile

    def append(self, changes: Sequence[Change]) -> Sequence[Change]:
        events = (event for each in changes for event in each.events)
        joins = any(isinstance(event, ItemsJoined) for event in events)
        if joins and self._profile.strikes("inbox refused by the store"):
            self.session.rollback("rolled back because its data was refused")
            raise DataRefused(INBOX_REFUSED)
        return super().append(changes)


class SimStore(MemoryStore):
    """The in-memory store on a connection that may fail."""

    server: Server

    @classmethod
    def at(cls, server: Server) -> SimStore:
        """A store on the one database of ``server``."""
        store = cls.on(server.database)
        store.server = server
        return store

    @contextmanager
    def transaction(self) -> Generator[MemoryTransaction]:
        """Begin; commit when the block ends, roll back when it raises."""
        with self.server.transaction() as connection:
            yield SimTransaction(connection.session, self.server.profile)


def _rollback(server: Server, connection: Connection, process: Process) -> Callable[[], None]:
    def cut() -> None:
        if process.frozen and connection.session.ended is None:
            connection.session.rollback(CRASHED)
            server.ended(connection)

    return cut
