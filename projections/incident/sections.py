"""The sections of an incident report, one function each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from uuid import UUID

from ..replay.clock import length, micros
from ..replay.facts import AuditLine
from ..replay.picture import depth_svg
from ..replay.workers import Work
from ..story import tell
from ..wording import count
from .markup import Cell, Html, html, scrolling, stamp, table, tag
from .pictures import waits_svg
from .values import CHANGES, Incident, Sufferer

ROWS_MAX = 100
STORY_LINES_MAX = 60


def in_short(incident: Incident) -> Html:
    """The numbers that one looks at first."""
    totals, faults = incident.totals, incident.faults
    overlap = sum(each.microseconds for each in faults.duplicates)
    failed = sum(each.count for each in faults.errors)
    longest = totals.longest[0].microseconds if totals.longest else 0
    facts: list[tuple[str, Cell, bool]] = [
        ("starts", totals.over, False),
        ("still waiting", totals.going_on, False),
        ("longest wait", length(longest), False),
        ("failed runs", failed, failed > 0),
        ("lost leases", len(faults.lost), bool(faults.lost)),
        ("double runs", len(faults.duplicates), bool(faults.duplicates)),
        ("ran twice at once for", length(overlap), overlap > 0),
        ("late writes refused", len(faults.refused), bool(faults.refused)),
        ("slow workers", len(incident.work.slow), bool(incident.work.slow)),
    ]
    shown = [
        tag("div", tag("dt", name), tag("dd", value), class_="bad" if bad else "plain")
        for name, value, bad in facts
    ]
    return Html(tag("dl", *shown, class_="facts"))


def depth(incident: Incident) -> Iterator[Html]:
    """Open jobs over time, by queue and state."""
    told = incident.depth
    yield _figure("Open jobs over time, stacked by where they stood", depth_svg(told, ""))
    if told.counts:
        rows = [[*place, max(numbers), numbers[-1]] for place, numbers in told.counts.items()]
        columns = ["queue", "state", "most", "at the end"]
        yield table("Open jobs by queue and state", columns, rows, ROWS_MAX)


def waits(incident: Incident) -> Iterator[Html]:
    """What starts had waited for."""
    totals = incident.totals
    if not totals.waits:
        yield tag("p", "No job waited.")
        return
    caption = "Time that one start had waited in the mean, by when it started and what for"
    yield _figure(caption, waits_svg(incident.waits))
    rows: list[list[Cell]] = [
        [cause.value, total.waits, length(total.microseconds), share, length(total.longest)]
        for cause, total, share in totals.shares()
    ]
    yield table(
        "Waits by cause, all starts together",
        ["waited for", "waits", "together", "share", "longest"],
        rows,
        ROWS_MAX,
    )


def failures(incident: Incident) -> Iterator[Html]:
    """Errors by fingerprint."""
    rows = [
        [
            each.count, each.jobs, ", ".join(sorted(each.names)), _long(each.text),
            stamp(each.first), stamp(each.last), _job(incident, each.example),
        ]
        for each in incident.faults.errors
    ]  # fmt: skip
    columns = ["runs", "jobs", "names", "error", "first", "last", "example"]
    yield _table("Failed runs by the fingerprint of their error", columns, rows, "No run failed.")


def lost(incident: Incident) -> Iterator[Html]:
    """Lost leases, double runs and refused writes."""
    faults = incident.faults
    rows: list[list[Cell]] = []
    for each in faults.lost:
        run = each.run
        ran = length(micros(run.ended or run.began) - micros(run.began))
        again = "no" if each.again is None else stamp(each.again)
        late = None if each.late is None else stamp(each.late.at)
        told = [_job(incident, run.job_id), run.name, run.worker, stamp(run.ended)]
        rows.append([*told, (run.why or "").replace("_", " "), ran, again, late])
    columns = ["job", "name", "worker", "lost", "why", "ran", "started again", "late answer"]
    yield _table("Lost leases", columns, rows, "No lease was lost.")
    rows = [
        [
            _job(incident, each.first.job_id), each.first.name,
            f"{each.first.worker} (start {each.first.start})",
            f"{each.second.worker} (start {each.second.start})",
            stamp(each.second.began), length(each.microseconds),
        ]
        for each in faults.duplicates
    ]  # fmt: skip
    columns = ["job", "name", "first", "second", "from", "overlap"]
    yield _table("Runs beside another of their job", columns, rows, "No job ran twice at once.")
    rows = [
        [_job(incident, each.job_id), each.name, each.worker, stamp(each.at), each.answer]
        for each in faults.refused
    ]
    if rows:
        columns = ["job", "name", "worker", "at", "answer"]
        yield table("Late writes that were refused", columns, rows, ROWS_MAX)


def workers(incident: Incident) -> Iterator[Html]:
    """Who was slow, and what each worker ran."""
    rows: list[list[Cell]] = [
        [
            slow.worker, slow.name, slow.runs, length(slow.median), length(slow.others),
            f"{slow.factor:.1f} times",
        ]
        for slow in incident.work.slow
    ]  # fmt: skip
    columns = ["worker", "name", "runs", "median", "median of the others", "as long"]
    none = "No worker was slower than the others at the same work."
    yield _table("Slow workers", columns, rows, none)
    rows = [_worker(work) for work in incident.work.work.values()]
    columns = ["worker", "slots", "code", "runs", "done", "failed", "released", "lost", "late"]
    yield _table("What each worker ran", [*columns, "run time"], rows, "Nothing ran.")


def changes(incident: Incident) -> Iterator[Html]:
    """Workers that came and went, pauses, limits and schedules."""
    rows = [
        [stamp(line.at), CHANGES[line.kind], _whom(line), _detail(line)]
        for line in incident.changes
    ]
    none = "No worker came or went, and nothing was paused, limited or scheduled anew."
    yield _table("Control changes", ["at", "change", "of", "detail"], rows, none)


def stories(incident: Incident) -> Iterator[Html]:
    """The jobs that suffered most."""
    yield tag(
        "p",
        "First those that failed for good, then those that ran twice at once, then by the time "
        "that they lost: waiting where nobody had planned it, and in runs that came to nothing. "
        "Times are UTC.",
    )
    if not incident.sufferers:
        yield tag("p", "No job lost any time.")
    for sufferer in incident.sufferers:
        yield _story(sufferer)


def _figure(caption: str, svg: str) -> Html:
    return tag("figure", tag("figcaption", caption), scrolling(caption, Html(svg)))


def _table(caption: str, columns: Sequence[str], rows: Sequence[Sequence[Cell]], none: str) -> Html:
    return table(caption, columns, rows, ROWS_MAX) if rows else tag("p", none)


def _long(text: str) -> Html:
    return tag("span", text, class_="long")


def _job(incident: Incident, job_id: UUID) -> Html:
    """A job's id, which leads to its story when that is told."""
    told = any(each.suffered.job_id == job_id for each in incident.sufferers)
    return tag("a", job_id, href=f"#job-{job_id}") if told else html(job_id)


def _worker(work: Work) -> list[Cell]:
    ends, facts = work.ends, work.facts
    known = [None, None] if facts is None else [facts.capacity, facts.code_version]
    failed = ends["retry_scheduled"] + ends["failed"]
    return [
        work.worker, *known, work.runs, ends["completed"], failed, ends["released"],
        work.lost, work.refused, length(work.microseconds),
    ]  # fmt: skip


def _whom(line: AuditLine) -> str | None:
    """The worker, queue or schedule that a change is about."""
    detail = line.detail
    return line.worker or detail.get("queue") or detail.get("schedule")


def _detail(line: AuditLine) -> str:
    """What a change says beside whom it is about, in words."""
    detail = line.detail
    match line.kind:
        case "worker_started":
            queues = ", ".join(map(str, detail.get("queues", ())))
            told = [count(int(detail.get("capacity", 0)), "slot"), f"queues {queues}"]
            told += [f"host {detail['host']}"] if detail.get("host") else []
            told += [f"code {detail['code_version']}"] if detail.get("code_version") else []
            return "; ".join(told)
        case "worker_died":
            return f"noticed by {detail.get('noticed_by', 'somebody')}"
        case "limit_changed":
            limit = detail.get("limit")
            return "no limit" if limit is None else f"{limit} at once"
        case "schedule_changed":
            return str(detail.get("cron") or "taken away")
        case _:
            return ""


def _story(sufferer: Sufferer) -> Html:
    suffered = sufferer.suffered
    why = [
        *(["failed for good"] if suffered.failed else []),
        *(["ran twice at once"] if suffered.twice else []),
        f"lost {length(suffered.lost)}: {length(suffered.waited)} waiting, "
        f"{length(suffered.wasted)} in runs that came to nothing",
    ]
    heading, *lines = tell(sufferer.stream, {})
    left = len(lines) - STORY_LINES_MAX
    if left > 0:
        lines = lines[-STORY_LINES_MAX:]
    told = [
        tag("li", tag("span", line.stamp, class_="at"), tag("span", line.text)) for line in lines
    ]
    before = [tag("p", f"{count(left, 'earlier line')} left out.", class_="quiet")] * (left > 0)
    return tag(
        "article",
        tag("h3", heading.text),
        tag("p", "; ".join(why), class_="quiet"),
        *before,
        tag("ol", *told, class_="story"),
        id=f"job-{suffered.job_id}",
    )
