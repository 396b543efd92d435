"""On what was measured: machine, versions, settings."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path

from .database import Server
from .environments import TOP


def facts(server: Server) -> dict[str, object]:
    """What a reader needs to judge figures by."""
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=False,
    )
    return {
        "at": now(),
        "commit": commit.stdout.strip(),
        "cores": os.cpu_count(),
        "processor": _processor(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "python": platform.python_version(),
        **server.facts(),
    }


def now() -> str:
    """The time of day, in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
