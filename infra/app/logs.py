"""Lines through the standard library, so that any application's handlers and levels see them.

The message reads by itself (``page synced job=… size=12``); the same facts are on the record as
``leasebook``, a dict.  Handlers are given a structlog logger that writes such lines too.
"""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import structlog


class Logger:
    """Writes lines to the standard library's logger of a name: an event, and its facts by name.

    The fact ``exc_info`` is what it is there: an error whose traceback belongs to the line.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def is_enabled_for(self, level: int) -> bool:
        """Whether lines of this level of ``logging`` are written."""
        return self._logger.isEnabledFor(level)

    def debug(self, event: str, **facts: object) -> None:
        """Write what matters only to somebody who looks for an error."""
        self._write(logging.DEBUG, event, facts)

    def info(self, event: str, **facts: object) -> None:
        """Write what is as it should be."""
        self._write(logging.INFO, event, facts)

    def warning(self, event: str, **facts: object) -> None:
        """Write what went wrong and was seen to."""
        self._write(logging.WARNING, event, facts)

    def error(self, event: str, **facts: object) -> None:
        """Write what somebody has to look at."""
        self._write(logging.ERROR, event, facts)

    def critical(self, event: str, **facts: object) -> None:
        """Write what this process does not survive."""
        self._write(logging.CRITICAL, event, facts)

    def _write(self, level: int, event: str, facts: dict[str, object]) -> None:
        if self._logger.isEnabledFor(level):
            (message,), more = _render(None, "", {**facts, "event": event})
            # Two frames of ours stand between the line and who wrote it.
            self._logger.log(level, message, **more, stacklevel=3)


@cache
def handler_logger() -> structlog.stdlib.BoundLogger:
    """The logger of all handlers, ``leasebook.handler``."""
    # structlog imports rich, and is a tenth of a second in coming: for those who use it only.
    import structlog

    logger: structlog.stdlib.BoundLogger = structlog.wrap_logger(
        logging.getLogger("leasebook.handler"),
        processors=[structlog.stdlib.filter_by_level, _render],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    return logger


def _render(
    logger: Any, method: str, event_dict: MutableMapping[str, Any]
) -> tuple[tuple[str], dict[str, Any]]:
    event = str(event_dict.pop("event", ""))
    kept = {name: event_dict.pop(name) for name in ("exc_info",) if name in event_dict}
    facts = " ".join(f"{name}={value}" for name, value in event_dict.items())
    # A percent sign is safe: the record has no arguments, so logging formats nothing.
    extra = {"leasebook": {"event": event, **event_dict}}
    return (f"{event} {facts}" if facts else event,), {"extra": extra, **kept}
