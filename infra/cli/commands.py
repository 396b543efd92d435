"""The command ``leasebook``: a group that imports a command when it is called."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

from .output import asks_for_json, ending, piped

#: command -> module and attribute; a command's module is imported when it is called
COMMANDS = {
    "migrate": ("schema", "migrate"),
    "check-schema": ("schema", "check_schema_command"),
    "worker": ("worker", "worker"),
    "enqueue": ("enqueue", "enqueue"),
    "stats": ("look", "stats"),
    "list": ("look", "list_jobs"),
    "history": ("history", "history"),
    "status": ("status", "status"),
    "check": ("check", "check_command"),
    "replay": ("replay", "replay"),
    "incident": ("incident", "incident"),
    "simulate": ("simulate", "simulate"),
    "doctor": ("doctor", "doctor"),
    "import-table": ("import_table", "import_command"),
    "cut-over": ("import_table", "cut_over"),
    "projection": ("projection", "projection"),
    "prune": ("prune", "prune"),
    "demo": ("demo", "demo"),
}


class _Commands(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, attribute = COMMANDS[cmd_name]
        command: click.Command = getattr(
            importlib.import_module(f".{module}", __package__), attribute
        )
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, which may lose its reader: ``leasebook list | head``."""
        with piped():
            return super().invoke(ctx)

    def main(  # type: ignore[override]
        self, args: Sequence[str] | None = None, prog_name: str | None = None, **extra: Any
    ) -> Any:
        """Run, and end the process with an exit code; every foreseeable error is one line."""
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        with ending(as_json=asks_for_json(words)):
            code = super().main(words, prog_name, **extra)
        sys.exit(code if isinstance(code, int) else 0)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="leasebook")
def main() -> None:
    """An event-sourced job queue in your own PostgreSQL.

    Exit codes: 0 done, 1 the answer is a finding, 2 refused input, 3 database unavailable.
    """
