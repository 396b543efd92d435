"""As many small worlds as fit into the time, and none of them breaks a promise."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.simulation.campaign import run
from tests.simulation.profile import FAULTS

SEEDS = 10_000
SECONDS = 60.0
#: Fewer than this in the time is no test of anything.
SEEDS_MIN = 500
TOP = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.acceptance("E06")
def test_no_world_breaks_a_promise() -> None:
    """Always the same seeds; LEASEBOOK_SIMULATION_START=20000 tries others."""
    start = int(os.environ.get("LEASEBOOK_SIMULATION_START", "0"))
    jobs = min(2, os.cpu_count() or 1)
    began = time.monotonic()
    tally = run(range(start, start + SEEDS), jobs, began + SECONDS)
    report = "\n".join(tally.lines(time.monotonic() - began))
    print(f"seeds from {start:,}\n{report}")
    assert not tally.failed, report
    assert tally.worlds >= SEEDS_MIN, report
    missing = [fault for fault in FAULTS if not tally.fired[fault]]
    assert not missing, f"these faults never fired: {missing}"


@pytest.mark.acceptance("E06")
def test_a_seed_is_a_history() -> None:
    """The same seeds give the same traces, in any process and whatever the hashes of texts are."""
    script = (
        "import logging; logging.disable(logging.CRITICAL)\n"
        "from tests.simulation.world import simulate\n"
        "print([simulate(seed).digest for seed in range(40)])"
    )
    told = [
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "PYTHONHASHSEED": hashes},
            cwd=TOP,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for hashes in ("1", "2")
    ]
    assert told[0] == told[1]
    assert len(set(told[0].split(","))) == 40
