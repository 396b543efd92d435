"""Ratios are taken inside a round, of quiet runs, and say how many times as good."""

from __future__ import annotations

from bench.measures import MEASURES
from bench.ratios import against, against_best, better, is_library, values_of
from bench.result import FIGURES, FOREIGN_CORES_MAX, MAIN, TITLES, Result
from bench.rounds import PLANS
from bench.tables import COLUMNS, table

RATE = "jobs_per_second"


def run(queue: str, number: int, value: float, foreign: float = 0.0, figure: str = RATE) -> Result:
    measure = "drain" if figure == RATE else "latency"
    return Result(measure, queue, number, 100, foreign, {figure: value})


RUNS = [
    run("bare", 0, 100),
    run("pgqueuer", 0, 20),
    run("awa", 0, 10),
    run("leasebook", 0, 40),
    # The whole machine was twice as fast in this round, and awa was first.
    run("bare", 1, 200),
    run("pgqueuer", 1, 40),
    run("awa", 1, 50),
    run("leasebook", 1, 100),
    # Nothing here may count: somebody else used the processors.
    run("bare", 2, 100, FOREIGN_CORES_MAX + 0.01),
    run("leasebook", 2, 1),
]


def test_queues_are_compared_inside_a_round() -> None:
    assert against(RUNS, "drain", RATE, "leasebook", "bare") == [0.4, 0.5]
    assert against(RUNS, "two", RATE, "leasebook", "bare") == []


def test_the_best_of_each_round_is_another() -> None:
    assert against_best(RUNS, "drain", RATE, "leasebook", is_library) == [2.0, 2.0]
    assert against_best(RUNS, "drain", RATE, "awa", is_library) == [0.5, 1.25]


def test_the_second_best_never_stands_in_for_the_best() -> None:
    """In the last round PGQueuer, the best of another, was disturbed; nobody may win by that."""
    disturbed = [
        run("pgqueuer", 2, 40, FOREIGN_CORES_MAX + 0.01),
        run("awa", 2, 10),
        run("leasebook", 2, 80),
    ]
    for runs in (RUNS[:4], RUNS[:8]):
        ratios = against_best(runs, "drain", RATE, "leasebook", is_library)
        assert against_best([*runs, *disturbed], "drain", RATE, "leasebook", is_library) == ratios


def test_busy_runs_do_not_count() -> None:
    assert values_of(RUNS, "drain", "bare", RATE) == [100, 200]
    assert values_of(RUNS, "drain", "leasebook", RATE) == [40, 100, 1]


def test_less_is_better_for_what_one_waits_for() -> None:
    assert better(RATE, 30, 10) == 3
    assert better("start_p50", 10, 30) == 3
    late = [run("leasebook", 0, 4, figure="start_p50"), run("oban", 0, 2, figure="start_p50")]
    assert against(late, "latency", "start_p50", "leasebook", "oban") == [0.5]


def test_a_table_has_medians_ranges_and_who_was_disturbed() -> None:
    made = table(RUNS, "drain")
    assert made.headings == [
        "queue",
        "jobs/s",
        "of bare SQL",
        "of the fastest other Python library",
        "quiet rounds",
    ]
    rows = {row[0]: tuple(row[1:]) for row in made.rows}
    assert rows["leasebook"] == ("40 (1–100)", "0.45 (0.40–0.50)", "2.00", "3 of 3")
    assert rows["bare SQL"][0] == "150 (100–200)"
    assert rows["bare SQL"][-1] == "2 of 3"
    noisy = table([run("bare", 0, 5, 1.0)], "drain")
    assert noisy.rows[0][-1] == "0 of 1: others were busy"


def test_every_measure_has_a_plan_a_title_and_known_figures() -> None:
    assert set(MEASURES) == set(PLANS) == set(TITLES) == set(MAIN) == set(COLUMNS)
    shown = {name for names in COLUMNS.values() for name in names}
    compared = {name for names in MAIN.values() for name in names}
    assert shown | compared <= set(FIGURES)
