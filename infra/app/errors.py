"""What the application's side of leasebook refuses, and how it suggests what was meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from uuid import UUID

from ...domain.errors import LeasebookError

WORD_CHARS_MAX = 60


def shown(word: object) -> str:
    """A word of the user as it stands in an error: quoted, and never long."""
    text = repr(word) if not isinstance(word, str) else repr(word[: WORD_CHARS_MAX + 1])
    return text if len(text) <= WORD_CHARS_MAX else f"{text[:WORD_CHARS_MAX]}…"


def suggestion(word: str, known: Iterable[str]) -> str:
    """What to do about a word that is not known: the nearest one, or all there are."""
    names = sorted(known)
    near = get_close_matches(word[:WORD_CHARS_MAX], names, n=1, cutoff=0.6)
    if near:
        return f"perhaps {near[0]!r} was meant"
    if not names:
        return "there are none"
    more = ", …" if len(names) > 20 else ""
    return f"known are {', '.join(names[:20])}{more}"


class UnknownName(LeasebookError, LookupError):
    """No job type is registered under this name."""

    code = "unknown_name"

    def __init__(self, name: str, known: Iterable[str]) -> None:
        hint = suggestion(name, known)
        super().__init__(f"no job type is named {shown(name)}: {hint}.")
        self.name = name


class NameTaken(LeasebookError):
    """Two handlers were registered under one name."""

    code = "name_taken"

    def __init__(self, name: str, holder: str) -> None:
        super().__init__(
            f"the job name {name!r} is taken by {holder}. "
            "Give one of the two another one: @book.job(name=...)."
        )
        self.name = name


class HandlerRefused(LeasebookError, TypeError):
    """A function cannot be a handler.  ``parameter`` names the one at fault, or is None."""

    code = "handler_refused"

    def __init__(self, handler: str, parameter: str | None, seen: str, remedy: str) -> None:
        place = (
            f"handler {handler}" if parameter is None else f"parameter {parameter!r} of {handler}"
        )
        super().__init__(f"{place}: {seen}. {remedy}.")
        self.handler = handler
        self.parameter = parameter


class ResultRefused(LeasebookError, ValueError):
    """A handler returned what cannot be kept: another run would be of no use."""

    code = "result_refused"

    def __init__(self, field: str, seen: str, remedy: str) -> None:
        super().__init__(f"{field}: {seen} was refused. {remedy[:1].upper()}{remedy[1:]}.")
        self.field = field
        self.seen = seen


class EffectUnfinished(LeasebookError):
    """The block of an effect ended without a word on whether it was done: nobody knows.

    The job is held until somebody finds out.
    """

    code = "effect_unfinished"

    def __init__(self, job_id: UUID, key: str, destination: str) -> None:
        super().__init__(
            f"the block of effect {shown(key)} to {shown(destination)} of job {job_id} ended "
            "without complete() or release(). Call one of them, or raise."
        )
        self.job_id = job_id
        self.key = key
        self.destination = destination


class NotRunning(LeasebookError):
    """A run was asked for what only a worker can give it."""

    code = "not_running"

    def __init__(self, job_id: UUID, what: str) -> None:
        super().__init__(
            f"cannot {what} job {job_id}: its handler is not run by a worker, or its run is over. "
            "Do it in the handler, before it returns."
        )
        self.job_id = job_id
