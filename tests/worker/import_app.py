"""An application that is slow to import, after having begun a thread and a process of its own."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from tests.worker.app import book as book
from tests.worker.app import wait_at

FOLDER = Path(os.environ["LEASEBOOK_TEST_FOLDER"])


def wait_for_ever() -> None:
    threading.Event().wait()


# Before the thread: a process that is forked beside others is what this test is not about.
child = os.fork()
if not child:
    wait_for_ever()
threading.Thread(target=wait_for_ever, daemon=True).start()
(FOLDER / "forked").write_text(str(child))
wait_at("import")
if (FOLDER / "broken").exists():
    raise RuntimeError("this application cannot be imported")
