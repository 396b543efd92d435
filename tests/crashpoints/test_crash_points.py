"""Every statement of an operation is cut before and after; nothing is lost, nothing half done.

A first run without a fault tells how many statements an operation sends.  Then it is done again for
each of them and each fault, by a client process of its own, and others finish what it leaves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pytest
from attrs import frozen

from tests.conformance.ground import assert_consistent

from .affecting import AFFECTING
from .client import Client
from .passage import Fault, Passage, Point
from .producing import ENQUEUEING, Caller, Enqueueing, work
from .scene import Scene
from .working import CARELESS, WORKING

pytestmark = [pytest.mark.fault, pytest.mark.acceptance("E04")]


class Operation(Protocol):
    """What is cut.  ``act`` runs in the client; it returns what it was told, to be verified."""

    @property
    def name(self) -> str: ...
    def prepare(self, scene: Scene, number: int, /) -> Any: ...
    def act(self, dsn: str, given: Any, /) -> Any: ...
    def verify(self, scene: Scene, given: Any, told: Any, /) -> None: ...


@frozen
class Course:
    """How one run went on the wire, and how much of everything it left."""

    statements: list[str]
    commits: list[int]
    left: tuple[int, ...]


def run(scene: Scene, operation: Operation, number: int, point: Point | None) -> Course:
    """Do it once, cut at ``point``, and let others finish."""
    given = operation.prepare(scene, number)
    before = scene.traces()

    def strike(backend: int) -> None:
        assert point is not None
        if point.fault is Fault.KILLED:
            client.kill()
        if point.fault is Fault.TERMINATED:
            scene.terminate(backend)
        struck.append(backend)

    struck: list[int] = []
    passage = Passage(scene.dsn, point, strike)
    try:
        client = Client(lambda: operation.act(passage.dsn, given))
        told = client.use(passage)
    finally:
        passage.close()
    for backend in struck:
        scene.wait_gone(backend)
    left = tuple(now - then for now, then in zip(scene.traces(), before, strict=True))
    if point is not None:
        assert struck, "it came to its end before this point"
        assert (told is None) == (point.fault is Fault.KILLED), f"the client was told {told}"
        if not passage.commits and point.fault is Fault.KILLED:
            assert not any(left), f"nothing was committed, and it left {left}"
    operation.verify(scene, given, told)
    assert_consistent(scene.ground)
    return Course(passage.statements, passage.commits, left)


def points(course: Course) -> Iterator[Point]:
    """Every boundary with every fault: after one statement is before the next."""
    last = len(course.statements)
    for number in range(1, last + 1):
        committed = number in course.commits
        for fault in (Fault.KILLED, Fault.TERMINATED):
            yield Point(fault, number, after=False)
            if committed or number == last:
                yield Point(fault, number, after=True)
        if committed:
            yield Point(Fault.LOST, number, after=True)


def cut_everywhere(dsn: str, operation: Operation) -> int:
    """Try every point of an operation; how many there are.  Raises and names the first bad one."""
    scene = Scene(dsn)
    try:
        whole = run(scene, operation, 0, None)
        assert whole.commits, f"{operation.name} committed nothing"
        every = list(points(whole))
        for number, point in enumerate(every, 1):
            try:
                course = run(scene, operation, number, point)
                if point.fault is Fault.KILLED and course.commits == whole.commits:
                    assert course.left == whole.left, f"{course.left} is left, not {whole.left}"
            except AssertionError as error:
                text = whole.statements[point.number - 1]
                raise AssertionError(
                    f"{operation.name}: {point} of {len(whole.statements)} ({text}): {error}"
                ) from error
        return len(every)
    finally:
        scene.close()


@pytest.mark.acceptance("Q01", "Q04")
@pytest.mark.parametrize("operation", ENQUEUEING, ids=lambda each: each.name)
def test_an_enqueue_is_there_whole_or_not_at_all(database_dsn: str, operation: Operation) -> None:
    print(f"{cut_everywhere(database_dsn, operation)} points")


@pytest.mark.parametrize("operation", WORKING, ids=lambda each: each.name)
def test_a_worker_may_die_anywhere(database_dsn: str, operation: Operation) -> None:
    print(f"{cut_everywhere(database_dsn, operation)} points")


@pytest.mark.acceptance("Q05", "Q09", "Q11")
@pytest.mark.parametrize("operation", AFFECTING, ids=lambda each: each.name)
def test_an_effect_is_made_once_or_is_uncertain(database_dsn: str, operation: Operation) -> None:
    """Killed, cut off or unheard before, in and after an effect, and the same for mutations."""
    print(f"{cut_everywhere(database_dsn, operation)} points")


def test_what_is_done_in_two_transactions_is_found_out(database_dsn: str) -> None:
    """A test of the test: an enqueue that is not in the caller's transaction fails at one point."""

    def late(caller: Caller, number: int) -> None:
        caller.commit()
        work.enqueue(caller, 10 * number)

    with pytest.raises(AssertionError, match=r"client killed after .* \(COMMIT\): lost: .*: 1}"):
        cut_everywhere(database_dsn, Enqueueing("enqueue after the commit", late))


def test_what_is_told_before_it_is_committed_is_found_out(database_dsn: str) -> None:
    """Another test of the test."""
    with pytest.raises(AssertionError, match=r"backend terminated before .*: completed of .* told"):
        cut_everywhere(database_dsn, CARELESS)
