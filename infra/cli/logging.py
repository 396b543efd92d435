"""Where a command's log lines go: standard error, as text or as JSON, one line each."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any


class JsonLines(logging.Formatter):
    """One JSON object a line: time, level, logger, event and its facts."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as JSON; values that JSON lacks are shown as text."""
        facts: dict[str, Any] = getattr(record, "leasebook", {"event": record.getMessage()})
        line = {
            "at": _at(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            **facts,
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str, ensure_ascii=False)


class TextLines(logging.Formatter):
    """``2026-11-29T14:03:22.115Z WARNING message``; line breaks in a message are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line, with a traceback below it where there is one."""
        message = record.getMessage().replace("\r", "\\r").replace("\n", "\\n")
        text = f"{_at(record)} {record.levelname:7} {message}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text


def configure_logging(log_format: str, level: str) -> None:
    """Send the lines of this process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if log_format == "json" else TextLines())
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _at(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
