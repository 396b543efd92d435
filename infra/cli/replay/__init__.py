"""``leasebook replay``: any moment and any cause from the log, without touching the queue."""

from __future__ import annotations

import click

from .depth import depth_command
from .export import export_command
from .faults import check_command, faults_command
from .moments import at_command, diff_command, job_command
from .restore import import_command
from .waiting import wait_command
from .workers import timeline_command, workers_command

COMMANDS = (
    job_command,
    at_command,
    wait_command,
    depth_command,
    faults_command,
    workers_command,
    timeline_command,
    diff_command,
    check_command,
    export_command,
    import_command,
)


class _InOrder(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(cls=_InOrder)
def replay() -> None:
    """Answer from the log what was, when, and why.

    It only reads, in short transactions.  MOMENT is a time with its zone (2026-03-01T14:00:00Z), or
    how long ago (-15m, -2h, -7d).

    Exit codes: 0 clean, 1 findings, 2 refused input, 3 database unavailable.
    """


for command in COMMANDS:
    replay.add_command(command)
