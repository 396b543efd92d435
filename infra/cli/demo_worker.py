"""A worker of the demo: ``leasebook worker`` that ends when the demo does, however that ended.

Its standard input is a pipe that the demo holds open and never writes to.  When the demo is gone,
kill -9 included, the pipe closes, and a worker that stayed would serve the next demo unasked.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from .commands import main

GRACE_SECONDS = 5.0


def _follow() -> None:
    # Not through sys.stdin, whose lock this thread would hold when the interpreter ends.
    os.read(0, 1)
    os.kill(os.getpid(), signal.SIGTERM)
    threading.Event().wait(GRACE_SECONDS)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    threading.Thread(target=_follow, name="demo-follow", daemon=True).start()
    main(["worker", *sys.argv[1:]], prog_name="leasebook")
