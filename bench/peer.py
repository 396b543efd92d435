"""One operation of one queue, in a process of its own: ``python -m bench.peer SPEC OP DSN [N]``.

The answer is one JSON value on the last line of standard output.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading

from . import counter
from .peers import Spec
from .peers.base import seed_finished
from .peers.leasebook import Leasebook

GAP_SECONDS = 0.02


def main(spec: str, operation: str, dsn: str, count: str = "0") -> None:
    """Do it, and print the answer."""
    peer = Spec.parse(spec).open(dsn)
    jobs = int(count)
    answer: object = None
    match operation:
        case "setup":
            peer.setup()
        case "bulk":
            answer = peer.bulk(jobs)
        case "single":
            answer = peer.single(jobs)
        case "paced":
            peer.paced(jobs, GAP_SECONDS)
        case "finished":
            seed_finished(peer, jobs)
        case "delayed":
            peer.delayed(jobs)
        case "claims":
            assert isinstance(peer, Leasebook)
            answer = peer.claim_milliseconds(jobs)
        case "work":
            counter.attach()
            peer.prepare()
            print("ready", flush=True)
            sys.stdin.readline()
            threading.Thread(target=_end_with_the_bench, daemon=True).start()
            peer.work()
        case _:
            raise ValueError(operation)
    print(json.dumps(answer), flush=True)


def _end_with_the_bench() -> None:
    """When whoever measures is gone, nobody is left to stop this worker."""
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main(*sys.argv[1:])
