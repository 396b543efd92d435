"""Ten thousand small worlds, and none of them breaks a promise."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.plugins.beside import Said
from tests.simulation.profile import FAULTS

START = os.environ.get("LEASEBOOK_SIMULATION_START", "0")
SEEDS = 10_000
TOP = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.acceptance("E06")
@pytest.mark.beside("-m", "tests.simulation", "--start", START, "--seeds", str(SEEDS))
@pytest.mark.timeout(900)
def test_no_world_breaks_a_promise(beside: Callable[[], Said]) -> None:
    """Always the same seeds; LEASEBOOK_SIMULATION_START=20000 tries others."""
    code, report = beside()
    print(report)
    assert code == 0, report
    assert f"{SEEDS:,} worlds" in report
    missing = [fault for fault in FAULTS if re.search(rf"^ +0  {fault}$", report, re.MULTILINE)]
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
