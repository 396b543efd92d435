"""The name of the schema that holds leasebook's tables, checked once and quoted for SQL."""

from __future__ import annotations

from attrs import field, frozen

from ....domain.errors import InvalidValue

DEFAULT = "leasebook"
#: PostgreSQL cuts longer names off without an error, so that two schemas would become one.
NAME_BYTES_MAX = 63


def _check(name: str) -> None:
    if not name:
        raise InvalidValue("schema", "an empty name", "name a schema, for example leasebook")
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise InvalidValue(
            "schema", f"{name!a}, which is not Unicode text,", "take out the lone surrogates"
        ) from None
    if size > NAME_BYTES_MAX:
        raise InvalidValue(
            "schema", f"a name of {size} bytes", f"PostgreSQL's names have {NAME_BYTES_MAX} at most"
        )
    if "\0" in name:
        raise InvalidValue("schema", f"{name!r}", "PostgreSQL's names hold no NUL")
    if "%" in name:
        # In a statement with parameters a percent sign begins a placeholder, in others it does not.
        raise InvalidValue("schema", f"{name!r}", "take a name without a percent sign")
    if name.startswith("pg_"):
        raise InvalidValue("schema", f"{name!r}", "PostgreSQL keeps names with pg_ to itself")


@frozen
class Schema:
    """A schema by its plain name, as in `Schema("Jobs-x")`: upper case and odd characters stay.

    Raises InvalidValue for a name that PostgreSQL would refuse, or silently change.
    """

    name: str = field(default=DEFAULT)

    def __attrs_post_init__(self) -> None:
        _check(self.name)

    @property
    def quoted(self) -> str:
        """The name as it is written in SQL, always in quotes."""
        return _quote(self.name)

    def table(self, name: str) -> str:
        """A table, index or function of the schema as it is written in SQL."""
        return f"{self.quoted}.{_quote(name)}"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
