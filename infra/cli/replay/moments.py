"""``replay job``, ``replay at`` and ``replay diff``: how things stood, and what changed."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import click
from attrs import asdict

from ....domain.job import Job
from ....projections.replay.at import HELD, is_open, job_at, queue_at, standing, until
from ....projections.replay.depth import STANDINGS
from ....projections.replay.diff import Changed, diff, moves
from ....projections.status import status
from ....projections.wording import count
from ..history import event_document, pruned, shown
from ..output import FINDING, finish
from ..tables import print_table
from .asking import Asked, TakesMoments, When, common, moment, replaying
from .showing import job_record, print_records, stamp

SHOWN_MAX = 20
limit_option = click.option(
    "--limit", default=SHOWN_MAX, show_default=True, type=click.IntRange(0),
    help="Lines of jobs in a table.",
)  # fmt: skip


@click.command("job")
@click.argument("job", type=click.UUID)
@click.option("--at", type=moment, default="now", metavar="MOMENT", help="As of this moment.")
@click.option("--version", type=click.IntRange(1), help="As of this version of its stream.")
@common(window=False, filters=False)
def job_command(asked: Asked, job: UUID, at: When, version: int | None) -> None:
    """The history of JOB and its folded state, as of any moment or version.

    Exit 1 when it was not there yet, has no such version, or was pruned: then it tells how it
    ended.
    """
    with replaying(asked, at) as replay:
        whole = tuple(replay.history.events(replay.until, job=job))
        stream = until(whole, replay.until, version)
        found = job_at(stream)
        ended = None if whole else replay.history.pruned(job)
        when = stamp(replay.until)
        if found is not None and version is not None and found.version < version:
            when = f"version {version}: it is at version {found.version}"
            found = None
        if asked.as_json:
            records = [{"record": "event", **event_document(each)} for each in stream]
            if found is not None:
                records.append(job_record("job", found))
            if ended is not None:
                records.append({"record": "pruned", **asdict(ended)})
            print_records(asked, replay, records)
        elif ended is not None:
            click.echo(pruned(ended))
        elif found is None:
            click.echo(f"leasebook: no job {job} was there at {when}", err=True)
        else:
            for line in shown(stream):
                click.echo(line)
            click.echo(_state(found))
    finish(FINDING if found is None else 0)


def _state(job: Job) -> str:
    words = [f"{standing(job)} at version {job.version}, to the public {status(job.state)}"]
    words.append(f"{count(job.starts, 'start')}, {job.attempts} of its attempts spent")
    if job.lease is not None:
        words.append(f"lease {job.lease.token} of {job.lease.worker} until {stamp(job.due_at)}")
    elif is_open(job) and not job.held:
        words.append(f"due {stamp(job.due_at)}")
    return "; ".join(words)


@click.command("at", cls=TakesMoments)
@click.argument("at", metavar="[MOMENT]", type=moment, default="now")
@limit_option
@common(window=False)
def at_command(asked: Asked, at: When, limit: int) -> None:
    """The whole queue as of MOMENT: counts by queue, and the jobs that were open."""
    with replaying(asked, at) as replay:
        jobs = [
            job
            for job in queue_at(replay.log(), replay.until)
            if is_open(job)
            and replay.choice.of_worker(None if job.lease is None else job.lease.worker)
        ]
        if asked.as_json:
            print_records(asked, replay, (job_record("job", job) for job in jobs))
            finish(0)
        click.echo(f"as of {stamp(replay.until)}: {count(len(jobs), 'open job')}")
        _show_counts(jobs)
        _show_jobs(jobs, limit)
    finish(0)


def _show_counts(jobs: list[Job]) -> None:
    counts = Counter((job.spec.queue, standing(job)) for job in jobs)
    queues = sorted({queue for queue, _ in counts})
    if queues:
        rows = [[queue, *(counts[queue, place] for place in STANDINGS)] for queue in queues]
        print_table(["queue", *STANDINGS], rows)


def _show_jobs(jobs: list[Job], limit: int) -> None:
    if not jobs or not limit:
        return
    click.echo()
    jobs.sort(key=lambda job: (job.held, job.due_at, job.id.int))
    rows: list[list[object]] = []
    for job in jobs[:limit]:
        worker = None if job.lease is None else job.lease.worker
        due = None if job.held else stamp(job.due_at)
        tries = f"{job.attempts}/{job.spec.policy.retries + 1}"
        rows.append([job.id, job.spec.name, job.spec.queue, _place(job), due, tries, worker])
    print_table(["job", "name", "queue", "state", "due or leased until", "tries", "worker"], rows)
    if len(jobs) > limit:
        click.echo(f"… and {len(jobs) - limit:,} more; --limit shows more")


def _place(job: Job) -> str:
    if job.held:
        return f"{HELD}: {job.outcome}"
    return str(job.state) if job.blocked_by is None else f"{job.state}, behind {job.blocked_by}"


@click.command("diff", cls=TakesMoments)
@click.argument("earlier", type=moment)
@click.argument("later", type=moment, default="now")
@limit_option
@common(window=False, workers=False)
def diff_command(asked: Asked, earlier: When, later: When, limit: int) -> None:
    """What changed between EARLIER and LATER: jobs by where they stood before and after."""
    with replaying(asked, later) as replay:
        begin = replay.at(earlier)
        if begin > replay.until:
            raise click.UsageError("the first moment is later than the second.")
        replay = replay.beginning(begin)
        changes = list(diff(replay.log(), begin, replay.until))
        if asked.as_json:
            print_records(asked, replay, map(_changed, changes))
            finish(0)
        click.echo(
            f"from {stamp(begin)} to {stamp(replay.until)}: {count(len(changes), 'job')} changed"
        )
        if changes:
            rows = [[*place, number] for place, number in moves(changes).items()]
            print_table(["queue", "before", "after", "jobs"], rows)
        if changes and limit:
            click.echo()
            lines = [
                [each.after.id, each.after.spec.name, *each.moved, stamp(each.after.at)]
                for each in changes[:limit]
            ]
            print_table(["job", "name", "before", "after", "last change"], lines)
            if len(changes) > limit:
                click.echo(f"… and {len(changes) - limit:,} more; --limit shows more")
    finish(0)


def _changed(change: Changed) -> dict[str, object]:
    before, after = change.moved
    version = None if change.before is None else change.before.version
    return job_record("changed", change.after) | {
        "before": before,
        "after": after,
        "version_before": version,
    }
