"""``replay export``: a piece of history as a file, without what must not leave."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path

import click

from ....domain.log import Recorded
from ....projections.redact import HIDEABLE, Redaction
from ....projections.replay.at import concerns
from ....projections.streams import by_job, steps
from ....projections.wording import count
from ...bundle.manifest import AUDIT, EVENTS, Manifest
from ...bundle.writer import write_bundle
from ...replay_ports import LOOK_BACK
from ..output import finish, saving
from .asking import Asked, Replay, common, replaying
from .showing import print_records

KEY_BYTES = 32
#: What of a choice leaves jobs out.
FILTERS = ("queue", "name", "key", "group", "job")


@click.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--hide", "hidden", multiple=True, type=click.Choice(HIDEABLE),
    help="Make pseudonyms of these too; may be given more than once.",
)  # fmt: skip
@click.option(
    "--with-values", is_flag=True,
    help="Take nothing out: arguments, results, errors and keys leave as they are.",
)  # fmt: skip
@common(workers=False)
def export_command(asked: Asked, file: Path, hidden: tuple[str, ...], with_values: bool) -> None:
    """Write a window of history into FILE, which every replay command reads with --bundle.

    Arguments, results, receipts, errors, keys, labels and the like are taken out: their shapes and
    pseudonyms are left, under a key that is made for this file and kept nowhere.
    """
    if with_values and hidden:
        raise click.UsageError("--with-values takes nothing out: leave it out, or --hide.")
    redaction = None
    if not with_values:
        redaction = Redaction(secrets.token_bytes(KEY_BYTES), frozenset(hidden))
    with replaying(asked, pinned=True) as replay:
        with saving(file):
            written = export(replay, file, redaction)
        if asked.as_json:
            parts = {name: part.lines for name, part in written.parts.items()}
            record = {"record": "export", "file": str(file), "redacted": written.redacted}
            print_records(asked, replay, [{**record, "lines": parts}])
        else:
            events, lines = written.parts[EVENTS].lines, written.parts[AUDIT].lines
            told = f"{count(events, 'event')} and {count(lines, 'audit line')}"
            click.echo(f"{file}: {told}, {'with values' if with_values else 'redacted'}")
    finish(0)


def export(replay: Replay, file: Path, redaction: Redaction | None) -> Manifest:
    """Write what a replay sees into ``file``; what the file says of itself.

    It reaches back as far before the window as the commands look.  Raises BundleThere.
    """
    known = replay.since - LOOK_BACK
    if replay.history.known_from is not None:
        known = max(known, replay.history.known_from)
    manifest = Manifest(
        version("leasebook"),
        replay.since,
        replay.until,
        known,
        None if replay.position is None else replay.position.document(),
        redaction is not None,
        () if redaction is None else tuple(sorted(redaction.hidden)),
        tuple(name for name in FILTERS if getattr(replay.choice, name) is not None),
        {},
    )
    audit = replay.history.audit(replay.until)
    return write_bundle(file, manifest, _chosen(replay, known), audit, redaction)


def _chosen(replay: Replay, known: datetime) -> Iterator[Recorded]:
    """The streams of the jobs asked about, damaged ones too, since they are worth a look."""
    choice = replay.choice
    for stream in by_job(replay.history.events(replay.until, known, choice.job)):
        life = steps(stream)
        if not life or (concerns(life, known) and choice.of_job(life[0].after.spec)):
            yield from stream
