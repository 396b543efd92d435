"""One open transaction of a worker on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from ...domain.events import ItemsJoined
from ...domain.evolve import fold
from ...domain.job import Job
from ...domain.log import Change, Recorded
from ...domain.ordering import Ahead
from ...domain.states import ENDED, State
from ...projections.depth import Depth, Tally, depth
from ...projections.row import FORMAT, state_row
from ...projections.status import summary
from ..codec import KINDS
from ..ports import Claim, Evidence, KeyArrivals, Waiting
from . import batches, order
from .arrivals import arrival_of
from .connection import Link, Row, text_of
from .rows import job_of, numbers, recorded, texts, uuids
from .schema.name import Schema
from .statements import append, collect, look, pick, summaries, workers
from .statements import depth as counting
from .statements import order as ordering

#: Before every due time there is.
NO_FLOOR = "-infinity"


class PostgresTransaction:
    """Implements ``ports.Transaction``; what the port promises is not said again here."""

    def __init__(self, link: Link, schema: Schema, began: datetime, collect_keys: int) -> None:
        self._link = link
        self._schema = schema
        self._at = began
        self._collect_keys = collect_keys
        self._waited_for: list[Job] = []

    @property
    def at(self) -> datetime:
        """The database's time, read when the transaction began or last locked something."""
        return self._at

    def append(self, changes: Sequence[Change]) -> Sequence[Change]:
        """Compare-and-set every stream and append; the changes that missed are returned.

        A batch holds one change of a stream at most.
        """
        ordered = batches.in_order(changes)
        if not ordered:
            return ()
        if (params := batches.completions(ordered)) is not None:
            return self._append(append.complete, ordered, params)
        if (params := batches.leases(ordered)) is not None:
            return self._append(append.lease, ordered, params)
        born = [each for each in ordered if each.before is None]
        ended = [each for each in ordered if each.before and state_row(each.after) is None]
        moved = [each for each in ordered if each.before and state_row(each.after) is not None]
        if ended and moved:
            ids = uuids([each.after.spec.id for each in ordered if each.before])
            self._ask(append.lock, {"ids": ids})
        missed: list[Change] = []
        # A group must be closed before the next one of its key can be open.
        for part, statement, params_of in (
            (ended, append.end, batches.ends),
            (moved, append.update, batches.updates),
            (born, append.birth, batches.births),
        ):
            if part:
                missed += self._append(statement, part, params_of(part))
        return missed

    def load(self, ids: Sequence[UUID]) -> dict[UUID, Job]:
        """The newest state of jobs, from their rows or, finished, from their streams."""
        jobs = {
            row[0]: job_of(row) for row in self._ask(look.rows, {"ids": uuids(sorted(set(ids)))})
        }
        gone = [job_id for job_id in ids if job_id not in jobs]
        if gone:
            for job_id, stream in self._streams(gone).items():
                if (job := fold(each.event for each in stream)) is not None:
                    jobs[job_id] = job
        return jobs

    def locked(self, ids: Sequence[UUID]) -> set[UUID]:
        """Which of these rows others have locked; the rest, where there is a row, is ours now."""
        return {row[0] for row in self._ask(append.locked, {"ids": uuids(ids)})}

    def stream(self, job_id: UUID) -> Sequence[Recorded]:
        """Every event of a job in order of version."""
        return self._streams([job_id]).get(job_id, ())

    def claim(self, wanted: Claim) -> Sequence[Job]:
        """Due waiting jobs in claim order, locked; what others hold is left out."""
        if wanted.limit <= 0 or not wanted.queues or not wanted.names:
            return ()
        params: dict[str, object] = {
            "queues": texts(wanted.queues),
            "names": texts(wanted.names),
            "since": NO_FLOOR if wanted.since is None else wanted.since,
            "limit": wanted.limit,
            "suspects": max(0, wanted.suspects),
            "format": FORMAT,
            "worker": wanted.worker,
        }
        if wanted.without or wanted.parents:
            passed = {"without": texts(wanted.without), "parents": uuids(wanted.parents)}
            return self._jobs(self._ask(pick.claim_others, params | passed))
        rows = self._ask(pick.claim, params)
        if rows and rows[-1][0] is None:
            rows = self._ask(pick.claim_among, params)
        return self._jobs(rows)

    def collectable(self, limit: int) -> Sequence[KeyArrivals]:
        """Up to ``limit`` of the oldest items by key, taken out of the inbox, keys locked."""
        keys = self._ask(
            collect.lock_keys,
            {
                "limit": limit,
                "keys": self._collect_keys,
                "schema": self._schema.name,
                "format": FORMAT,
            },
        )
        if not keys:
            return ()
        queues, names, group_keys, ids = zip(*keys, strict=True)
        groups = self._ask(
            collect.open_groups,
            {
                "queues": texts(queues),
                "names": texts(names),
                "group_keys": texts(group_keys),
                "format": FORMAT,
                "joined": KINDS[ItemsJoined.kind],
            },
        )
        usable: dict[Row, Job | None] = {}
        taken: list[int] = []
        for key, its_ids, (seen, newest, *row) in zip(keys, ids, groups, strict=True):
            if seen and row[0] is None:
                continue  # The open group is in somebody else's hands; its items stay.
            usable[key[:3]] = None if row[0] is None else job_of(row)
            # What was committed late waits for the next group, so that each is in order.
            taken += [each for each in its_ids if newest is None or each > newest]
        return self._take(usable, taken)

    def ahead(self, jobs: Sequence[Job], settled: Mapping[str, int]) -> Mapping[UUID, Ahead]:
        """What these claimed jobs, with ordering keys or parents, find before them."""
        if not jobs:
            return {}
        found, at = order.ahead(self._ask, self._schema, jobs, settled)
        self._moved_to(at)
        return found

    def waited_for(self) -> Sequence[Job]:
        """The jobs that have ended in this transaction and that others wait for, each once."""
        ended, self._waited_for = self._waited_for, []
        return ended

    def waiting(self, blockers: Sequence[UUID], parents: Sequence[UUID]) -> Waiting:
        """The jobs that ``blockers`` block, and those blocked or held that come after others."""
        params = {"blockers": uuids(blockers), "parents": uuids(parents)}
        rows = self._ask(ordering.waiting, params)
        found, locked = rows[0][0], [row[1:] for row in rows if row[2] is not None]
        return Waiting(self._jobs(locked), reached=len(locked) == found)

    def stranded(self, limit: int) -> Sequence[Job]:
        """Blocked jobs whose blocker has no row any more, locked; there should be none."""
        return self._jobs(self._ask(ordering.stranded, {"limit": limit, "format": FORMAT}))

    def overdue(self, limit: int) -> Sequence[Job]:
        """Leased jobs whose lease has ended, of any queue and name, locked in order of id."""
        return self._jobs(self._ask(pick.overdue, {"limit": limit, "format": FORMAT}))

    def leased_by(self, worker: str, limit: int) -> Sequence[Job]:
        """Leased jobs of one worker, locked in order of id."""
        params = {"worker": worker, "limit": limit, "format": FORMAT}
        return self._jobs(self._ask(pick.leased_by, params))

    def holds_leases(self, worker: str) -> bool:
        """Whether a worker holds any lease, of a locked row too."""
        ((any_left,),) = self._ask(pick.holds_leases, {"worker": worker, "format": FORMAT})
        return bool(any_left)

    def is_alive(self, worker: str) -> bool:
        """Whether the worker's own row is alive; it cannot be buried before this one ends."""
        ((alive, at),) = self._ask(workers.is_alive, {"worker": worker})
        self._moved_to(at)
        return alive is True

    def bury(self, worker: str) -> bool:
        """Mark a worker dead; False when it already was, or is gone."""
        ((buried, at),) = self._ask(workers.bury, {"worker": worker})
        self._moved_to(at)
        return bool(buried)

    def lead(self, duty: str) -> bool:
        """Try to be the only one to do ``duty`` until this transaction ends."""
        params = {"schema": self._schema.name, "duty": duty}
        ((ours,),) = self._link.ask(workers.lead(), params)
        return bool(ours)

    def due_again(self, duty: str, seconds: float) -> float:
        """0.0 when ``duty`` is due again and now stamped, else in how many seconds it will be."""
        params = {"name": duty, "seconds": seconds}
        if self._ask(counting.due_again, params):
            return 0.0
        ((left,),) = self._ask(counting.seconds_left, params)
        return max(0.001, float(left))

    def depth(self) -> Depth:
        """How deep the whole queue is, by one count of everything."""
        self._link.ask(counting.unbound(), {})
        rows = self._ask(counting.tallies, {})
        (items,) = (count for state, _, _, count, _ in rows if state is None)
        return depth(
            [Tally(State(state), *rest) for state, *rest in rows if state is not None], items
        )

    def record(self, evidence: Sequence[Evidence]) -> None:
        """Append to the audit log."""
        if evidence:
            self._ask(
                workers.record,
                {
                    "kinds": texts([each.kind for each in evidence]),
                    "job_ids": [each.job_id for each in evidence],
                    "workers": texts([each.worker for each in evidence]),
                    "details": texts([each.detail for each in evidence]),
                },
            )

    def _ask(self, statement: Callable[[Schema], str], params: Mapping[str, Any]) -> list[Row]:
        return self._link.ask(text_of(statement, self._schema), params)

    def _append(
        self, statement: Callable[[Schema], str], changes: list[Change], params: Mapping[str, Any]
    ) -> list[Change]:
        """Run one compare-and-set, then what its hits have to tell beyond their first event."""
        ((at, hits, ids, waited_for),) = self._ask(statement, params)
        self._moved_to(at)
        if waited_for:
            marked: set[UUID] = set(waited_for)
            after = (each.after for each in changes if each.after.spec.id in marked)
            self._waited_for += [job for job in after if job.state in ENDED]
        missed: list[Change] = []
        if hits < len(changes):
            stood: set[UUID] = set(ids or ())
            missed = [each for each in changes if each.after.spec.id not in stood]
            changes = [each for each in changes if each.after.spec.id in stood]
        if (more := batches.further(changes)) is not None:
            self._ask(append.further_events, more)
        self._summarize(changes)
        return missed

    def _summarize(self, changes: Sequence[Change]) -> None:
        """Keep how jobs with an owner have ended; of others nothing is asked."""
        owned = (each.after for each in changes if each.after.spec.owner is not None)
        ended = [found for job in owned if (found := summary(job)) is not None]
        if ended:
            self._ask(summaries.keep, batches.summaries(ended))

    def _take(self, groups: Mapping[Row, Job | None], ids: Sequence[int]) -> list[KeyArrivals]:
        """Take items out of the inbox; a key whose items have all gone meanwhile is left out."""
        if not ids:
            return []
        arrivals: dict[Row, list[Any]] = {}
        for row in self._ask(collect.take_items, {"ids": numbers(ids)}):
            item_id, at, *key, item, spec, sequence = row
            arrival = arrival_of(item_id, at, item, spec, sequence)
            arrivals.setdefault(tuple(key), []).append(arrival)
        return [
            KeyArrivals(group, tuple(arrivals[key]))
            for key, group in groups.items()
            if key in arrivals
        ]

    def _streams(self, ids: Sequence[UUID]) -> dict[UUID, tuple[Recorded, ...]]:
        rows = self._ask(look.streams, {"ids": uuids(sorted(set(ids)))})
        return {
            job_id: tuple(recorded(row) for row in stream)
            for job_id, stream in groupby(rows, key=lambda row: row[0])
        }

    def _jobs(self, rows: Sequence[Row]) -> list[Job]:
        if rows:
            self._moved_to(rows[0][0])
        return [job_of(row[1:]) for row in rows]

    def _moved_to(self, at: datetime) -> None:
        if at > self._at:
            self._at = at
