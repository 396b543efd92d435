"""How deep the whole queue is: the three numbers of the monitoring line, and the rule behind them.

The store only counts rows by what they are; what counts as due or in flight is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import frozen

from ..domain.states import State

#: More due jobs than this, and the line is an error.
DUE_ALARM = 10_000


@frozen
class Tally:
    """``count`` unfinished jobs that are alike.

    ``reached``: the job's time has come; of a leased job that is the end of its lease.
    ``stopped``: its queue is paused or it is blocked behind another job, so that it may not start.
    """

    state: State
    held: bool
    reached: bool
    count: int
    stopped: bool = False


@frozen
class Depth:
    """How many jobs are ready to run, how many are under way, and how many there are.

    ``due``: ready to run, those whose lease has expired included.  ``in_flight``: leased, or
    waiting for a retry.  ``total``: every unfinished job, and every item not yet collected.
    ``stopped``: jobs that may not start, held ones included.
    """

    due: int
    in_flight: int
    total: int
    stopped: int = 0

    @property
    def alarming(self) -> bool:
        """Whether somebody should look: more than ``DUE_ALARM`` jobs are due."""
        return self.due > DUE_ALARM


def depth(tallies: Iterable[Tally], items: int) -> Depth:
    """The depth of a queue with these jobs, and ``items`` in the inbox.

    Paused, blocked, delayed and not yet due grouped jobs count in the total only, as do items;
    held jobs count nowhere: they are finished until an operator says otherwise.
    """
    due = in_flight = total = stopped = 0
    for each in tallies:
        stopped += each.count if each.stopped else 0
        if each.held:
            continue
        total += each.count
        if each.reached and not each.stopped:
            due += each.count
        elif not each.reached and _under_way(each):
            in_flight += each.count
    return Depth(due, in_flight, total + items, stopped)


def _under_way(tally: Tally) -> bool:
    """A run goes on whatever became of its queue; a retry of a paused queue waits for the queue."""
    return tally.state is State.LEASED or (tally.state is State.RETRY_WAIT and not tally.stopped)
