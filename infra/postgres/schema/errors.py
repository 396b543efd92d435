"""Why a schema cannot be used, or not be made."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from ....domain.errors import LeasebookError
from ....migrations import REVISIONS
from .name import Schema


def migrate_command(schema: Schema) -> str:
    """What a person types to make the schema complete."""
    return f"leasebook migrate --schema {shlex.quote(schema.name)}"


class SchemaIncomplete(LeasebookError):
    """The schema lacks something that this release needs; nothing was started.

    ``problems`` has a sentence for everything missing or wrong.  ``revisions`` is what the schema
    says of itself: the migrations it had.
    """

    code = "schema_incomplete"

    def __init__(
        self, schema: Schema, problems: Sequence[str], revisions: Sequence[str] = ()
    ) -> None:
        command = migrate_command(schema)
        if REVISIONS[-1] in revisions:
            remedy = (
                f"The schema had every migration and was changed afterwards, which `{command}` "
                f"does not undo. Put back what is named here; `{command} --sql` prints the "
                "statements that made it."
            )
        else:
            remedy = f"Run: {command}"
        lines = "".join(f"\n  - {problem}" for problem in problems)
        super().__init__(f"schema {schema.quoted} cannot be used:{lines}\n{remedy}")
        self.schema = schema.name
        self.problems = tuple(problems)
        self.revisions = tuple(revisions)


class SchemaNewer(LeasebookError):
    """A later release migrated the schema, and what this one needs is no longer all there.

    ``problems`` names what is missing or wrong; it is empty for a migration, which an older release
    cannot do at all.
    """

    code = "schema_newer"

    def __init__(
        self, schema: Schema, revisions: Sequence[str], problems: Sequence[str] = ()
    ) -> None:
        lines = "".join(f"\n  - {problem}" for problem in problems)
        super().__init__(
            f"schema {schema.quoted} cannot be used: it is at revision {', '.join(revisions)}, and "
            f"this release knows {', '.join(REVISIONS)}.{lines} Install the release of leasebook "
            "that migrated it, or a later one."
        )
        self.schema = schema.name
        self.revisions = tuple(revisions)
        self.problems = tuple(problems)


class MigrationPooled(LeasebookError):
    """The DSN leads through a pooler, whose sessions a migration would change for others."""

    code = "migration_pooled"

    def __init__(self, schema: Schema) -> None:
        super().__init__(
            f"schema {schema.quoted} cannot be migrated through a pooler: a migration locks and "
            "sets things for its session, and here a session is everybody's. "
            "Give the server's own DSN."
        )
        self.schema = schema.name


class MigrationFailed(LeasebookError):
    """The server refused the migration.

    Of a new schema nothing is there; an upgrade goes on where it was when it is run again.

    ``sqlstate`` is PostgreSQL's code, None when the connection was lost: then nobody knows.
    """

    code = "migration_failed"

    def __init__(self, schema: Schema, reason: str, sqlstate: str | None) -> None:
        super().__init__(f"cannot migrate schema {schema.quoted}: {reason}. {_advice(sqlstate)}")
        self.schema = schema.name
        self.sqlstate = sqlstate


def _advice(sqlstate: str | None) -> str:
    match sqlstate:
        case "42501":
            return "Migrate as the schema's owner, or as a role that may create it."
        case "42P07" | "42723":
            return "Something of that name is in the schema: migrate into a schema of its own."
        case "55P03":
            return "Some session keeps a lock on its tables: end that one and run it again."
        case None:
            return "Run it again: it goes on from what is there."
        case _:
            return "Mend the cause and run it again."
