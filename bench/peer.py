"""One operation of one queue, in a process of its own: ``python -m bench.peer SPEC OP DSN [N]``.

The answer is one JSON value on the last line of standard output.
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys

from . import counter
from .peers import Spec
from .peers.base import Peer
from .peers.leasebook import Leasebook

#: By ``prctl(2)``: send a signal when the parent has died.
PR_SET_PDEATHSIG = 1


def main(spec: str, operation: str, dsn: str, *numbers: str) -> None:
    """Do it, and print the answer."""
    peer = Spec.parse(spec).open(dsn)
    values = [float(number) for number in numbers]
    jobs = int(values[0]) if values else 0
    answer: object = None
    match operation:
        case "setup":
            peer.setup()
        case "bulk":
            answer = peer.bulk(jobs)
        case "single":
            answer = peer.single(jobs)
        case "paced":
            peer.paced(jobs, values[1])
        case "finished" | "delayed" | "keyed" | "held":
            getattr(peer, operation)(jobs)
        case "hot":
            answer = peer.hot(jobs, values[1], values[2])
        case "writers":
            answer = peer.writers(jobs, values[1], bool(values[2]))
        case "claims":
            assert isinstance(peer, Leasebook)
            answer = peer.claim_milliseconds(jobs)
        case "work":
            _work(peer, many=bool(jobs))
        case _:
            raise ValueError(operation)
    print(json.dumps(answer), flush=True)


def _work(peer: Peer, many: bool) -> None:
    counter.attach()
    peer.prepare()
    _end_with_the_bench()
    print("ready", flush=True)
    if sys.stdin.readline():
        peer.work(many)


def _end_with_the_bench() -> None:
    """When whoever measures is gone, nobody is left to stop this worker.

    (A thread that looks for it would be one that a worker does not have.)
    """
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    main(*sys.argv[1:])
