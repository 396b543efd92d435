"""One open transaction of the in-memory database.

READ COMMITTED at statement grain: each call sees what is committed at its start and the own
writes.  Where the port says "left out", what another open transaction has locked is left out;
where PostgreSQL would wait for a row, ``Session.run`` decides what waiting means here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import islice
from uuid import UUID

from ...domain.events import ItemsJoined
from ...domain.evolve import fold
from ...domain.job import Job
from ...domain.log import Change, Recorded
from ...domain.ordering import Ahead
from ...domain.states import ENDED, State
from ...projections.depth import Depth, Tally, depth
from ...projections.row import from_row, to_row
from ...projections.status import summary
from ..codec import encode
from ..ports import Claim, DataRefused, Evidence, KeyArrivals, Waiting
from .order import ahead, is_stranded, waiting_rows
from .picking import by_key, due_jobs, group_of, leased_jobs, open_groups, take_free
from .reading import arrival, recorded
from .session import Session
from .statement import statement
from .storable import check_event, check_row
from .tables import StoredEvent, StoredJob


class MemoryTransaction:
    """Implements ``ports.Transaction``; what the port promises is not said again here."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._waited_for: list[Job] = []

    @property
    def at(self) -> datetime:
        """The time when it began or last locked something."""
        return self.session.at

    @property
    def xid(self) -> int:
        """The number of this transaction, as its events carry it."""
        return self.session.owner.xid

    @statement
    def append(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Compare-and-set every stream and append; the changes that missed are returned."""
        ids = {change.after.id for change in changes}
        assert len(ids) == len(changes), "a batch holds one change of a stream at most"
        assert all(change.events for change in changes), "a change without events is none"
        standing = [self._stands(change) for change in changes]
        missed = [change for change, stands in zip(changes, standing, strict=True) if not stands]
        hits = [change for change, stands in zip(changes, standing, strict=True) if stands]
        hits.sort(key=lambda change: change.after.id)
        for change in hits:
            self.session.lock("job", change.after.id)
        for change in hits:
            self.write(change)
        self._check_open_groups(hits)
        return missed

    @statement
    def load(self, ids: Sequence[UUID]) -> dict[UUID, Job]:
        """The newest state of jobs, from their rows or, finished, from their streams."""
        jobs: dict[UUID, Job] = {}
        for job_id in ids:
            row = self.session.jobs.get(job_id)
            if row is not None:
                jobs[job_id] = from_row(row.spec, row.state)
            elif (job := fold(each.event for each in self._stream(job_id))) is not None:
                jobs[job_id] = job
        return jobs

    @statement
    def locked(self, ids: Sequence[UUID]) -> set[UUID]:
        """Which of these rows others have locked; the rest, where there is a row, is ours now."""
        rows = [self.session.jobs.get(job_id) for job_id in sorted(ids)]
        return {row.spec.id for row in rows if row is not None and not self._try_row(row)}

    @statement
    def stream(self, job_id: UUID) -> Sequence[Recorded]:
        """Every event of a job in order of version."""
        return self._stream(job_id)

    @statement
    def claim(self, wanted: Claim) -> Sequence[Job]:
        """Due waiting jobs in claim order, locked; what others hold is left out."""
        if wanted.worker is not None and not self.session.is_alive(wanted.worker):
            return ()
        due = due_jobs(self.session.jobs.values(), wanted, self.session.read_time())
        return self._jobs(take_free(due, wanted, self._try_row))

    @statement
    def collectable(self, limit: int) -> Sequence[KeyArrivals]:
        """Up to ``limit`` of the oldest items by key, taken out of the inbox, keys locked."""
        session = self.session
        oldest = sorted(session.inbox.values(), key=lambda item: item.id)
        taken: list[KeyArrivals] = []
        groups = {group_of(row.spec): row for row in open_groups(session.jobs.values())}
        for key, items in by_key(oldest[:limit]).items():
            group = groups.get(key)
            if not session.try_lock("group", key) or (group and not self._try_row(group)):
                continue
            # What was committed late waits for the next group, so that each is in order.
            newest = 0 if group is None else self._newest_item(group)
            items = [item for item in items if item.id > newest]
            if not items:
                continue
            for item in items:
                session.inbox.remove(item.id)
            job = None if group is None else from_row(group.spec, group.state)
            taken.append(KeyArrivals(job, tuple(arrival(item) for item in items)))
        session.read_time()
        return taken

    @statement
    def ahead(self, jobs: Sequence[Job], settled: Mapping[str, int]) -> Mapping[UUID, Ahead]:
        """What these claimed jobs, with ordering keys or parents, find before them."""
        found = ahead(self.session, jobs, settled)
        for job_id, each in tuple(found.items()):
            if each.behind is None:
                continue
            row = self.session.jobs.get(each.behind)
            if row is None or not self._try_row(row):
                del found[job_id]
            elif not row.has_waiter:
                self.session.jobs.put(each.behind, row._replace(has_waiter=True))
        self.session.read_time()
        return found

    @statement
    def waited_for(self) -> Sequence[Job]:
        """The jobs that have ended in this transaction and that others wait for, each once."""
        ended, self._waited_for = self._waited_for, []
        return ended

    @statement
    def waiting(self, blockers: Sequence[UUID], parents: Sequence[UUID]) -> Waiting:
        """The jobs that ``blockers`` block, and those blocked or held that come after others."""
        found = waiting_rows(self.session.jobs.values(), blockers, parents)
        locked = [row for row in found if self._try_row(row)]
        self.session.read_time()
        return Waiting(self._jobs(locked), reached=len(locked) == len(found))

    @statement
    def stranded(self, limit: int) -> Sequence[Job]:
        """Blocked jobs whose blocker has ended or is held for good, locked."""
        rows = [row for row in self.session.jobs.values() if is_stranded(self.session, row)]
        self.session.read_time()
        return self._jobs(islice(filter(self._try_row, rows), limit))

    @statement
    def overdue(self, limit: int) -> Sequence[Job]:
        """Leased jobs whose lease has ended, of any queue and name, locked in order of id."""
        ended = leased_jobs(self.session.jobs.values(), ended_by=self.session.read_time())
        ended.sort(key=lambda job: (job.state.due_at, job.spec.id))
        free = list(islice(filter(self._try_row, ended), limit))
        return self._jobs(sorted(free, key=lambda job: job.spec.id))

    @statement
    def leased_by(self, worker: str, limit: int) -> Sequence[Job]:
        """Leased jobs of one worker, locked in order of id."""
        held = leased_jobs(self.session.jobs.values(), worker)
        held.sort(key=lambda job: job.spec.id)
        self.session.read_time()
        return self._jobs(islice(filter(self._try_row, held), limit))

    @statement
    def holds_leases(self, worker: str) -> bool:
        """Whether a worker holds any lease, of a locked row too."""
        return bool(leased_jobs(self.session.jobs.values(), worker))

    @statement
    def is_alive(self, worker: str) -> bool:
        """Whether the worker's own row is alive; it cannot be buried before this one ends."""
        return self.session.is_alive(worker)

    @statement
    def bury(self, worker: str) -> bool:
        """Mark a worker dead; False when it already was, or is gone."""
        self.session.lock("worker", worker)
        row = self.session.workers.get(worker)
        if row is None or not row.alive:
            return False
        self.session.workers.put(worker, row._replace(alive=False))
        return True

    @statement
    def lead(self, duty: str) -> bool:
        """Try to be the only one to do ``duty`` until this transaction ends."""
        return self.session.try_lock("duty", duty)

    @statement
    def due_again(self, duty: str, seconds: float) -> float:
        """0.0 when ``duty`` is due again and now stamped, else in how many seconds it will be."""
        self.session.lock("checkpoint", duty)
        at, last = self.session.read_time(), self.session.checkpoints.get(duty)
        left = 0.0 if last is None else seconds - (at - last).total_seconds()
        if left <= 0.0 or left > seconds:
            self.session.checkpoints.put(duty, at)
            return 0.0
        return left

    @statement
    def depth(self) -> Depth:
        """How deep the whole queue is, by one count of everything."""
        at = self.session.read_time()
        states = (row.state for row in self.session.jobs.values())
        counted = [
            Tally(State(each.state), each.held, each.due_at <= at, 1, each.blocked_by is not None)
            for each in states
        ]
        return depth(counted, sum(1 for _ in self.session.inbox.values()))

    @statement
    def record(self, evidence: Sequence[Evidence]) -> None:
        """Append to the audit log."""
        for each in evidence:
            self.session.record(each)

    def write(self, change: Change) -> int:
        """Append one change that stands, and return the job's ``seq``.  The stream is locked."""
        session, job_id = self.session, change.after.id
        stream = list(session.events.get(job_id) or ())
        first = 1 if change.before is None else change.before.version + 1
        if len(stream) + 1 != first:
            raise DataRefused(f"job {job_id}: version {first} meets {len(stream)} events")
        for version, event in enumerate(change.events, first):
            columns = encode(event)
            check_event(columns)
            event_id = next(session.hub.tables.event_ids)
            stream.append(StoredEvent(version, event_id, self.xid, columns))
        session.events.put(job_id, tuple(stream))
        sequence = change.after.spec.sequence
        seq = stream[0].event_id if sequence is None else sequence
        row = to_row(change.after)
        if row is None:
            self._ended(session.jobs.get(job_id), change.after)
            session.jobs.remove(job_id)
            ended = summary(change.after)
            if ended is not None and ended.owner is not None:
                session.summaries.put(job_id, ended)
            return seq
        check_row(row)
        spec, state = row
        before = session.jobs.get(job_id)
        if before is None:
            session.jobs.put(job_id, StoredJob(seq, spec, state))
        else:
            session.jobs.put(job_id, before._replace(state=state))
            self._ended(before, change.after)
        return seq

    def _ended(self, row: StoredJob | None, job: Job) -> None:
        """Remember a job that has ended and that others wait for."""
        if row is not None and row.has_waiter and job.state in ENDED:
            self._waited_for.append(job)

    def _stands(self, change: Change) -> bool:
        """Whether the stream is still at the version that the change was decided on."""
        row = self.session.jobs.get(change.after.id)
        if change.before is None:
            return row is None and self.session.events.get(change.after.id) is None
        return row is not None and row.state.version == change.before.version

    def _check_open_groups(self, changes: Iterable[Change]) -> None:
        """Refuse a second open group of one key, as the unique index does."""
        after = (change.after for change in changes)
        opened = {group_of(job.spec) for job in after if job.state is State.GROUPED}
        if not opened:
            return
        rows = open_groups(self.session.jobs.values())
        keys = [key for row in rows if (key := group_of(row.spec)) in opened]
        if len(keys) > len(opened):
            raise DataRefused("a key has one open group at most")

    def _stream(self, job_id: UUID) -> tuple[Recorded, ...]:
        return recorded(job_id, self.session.events.get(job_id) or ())

    def _newest_item(self, group: StoredJob) -> int:
        events = [each.event for each in self._stream(group.spec.id)]
        joined = [each for each in events if isinstance(each, ItemsJoined)]
        return joined[-1].item_ids[-1]

    def _try_row(self, job: StoredJob) -> bool:
        return self.session.try_lock("job", job.spec.id)

    def _jobs(self, rows: Iterable[StoredJob]) -> list[Job]:
        return [from_row(row.spec, row.state) for row in rows]
