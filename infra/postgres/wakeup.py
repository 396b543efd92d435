"""The bell in PostgreSQL: LISTEN in a thread of its own, NOTIFY on a connection of its own.

The listener is never inside a transaction, reads its socket as soon as something arrives, and
sleeps in the kernel otherwise.  A bell that was deaf for a while rings once when it hears again,
because nobody knows what it missed.  Behind a pooler it is silent, and polling finds the jobs.
"""

from __future__ import annotations

import selectors
import socket
from collections.abc import Callable
from hashlib import blake2b
from threading import Condition, Event, Lock, Thread
from time import monotonic

import psycopg

from ...domain.pacing import backoff
from ..ports import StoreUnavailable
from .connection import Link, Row, sorted_errors
from .dsn import check_dsn
from .schema.name import DEFAULT, Schema
from .settings import Settings
from .statements import frame, workers

#: The name of the sessions that listen, by which they are found when they are stuck.
LISTENER = "leasebook wake-up"
CLOSE_SECONDS_MAX = 5.0
#: A listener that held this long has been well; the next loss starts the back-off anew.
WELL_SECONDS = 60.0


def channel(schema: Schema) -> str:
    """The channel of a schema, the same in every process: PostgreSQL cuts names at 63 bytes."""
    return f"leasebook_{blake2b(schema.name.encode(), digest_size=16).hexdigest()}"


class PostgresWakeup:
    """Implements ``ports.Wakeup``.  Any thread may call any method; one at a time waits.

    The first ``wait`` starts the listener.  ``poke`` wakes a waiter of this process without asking
    the database.  Raises InvalidDsn at once when libpq cannot read ``dsn``.
    """

    def __init__(
        self,
        dsn: str,
        schema: str = DEFAULT,
        *,
        application_name: str = LISTENER,
        settings: Settings | None = None,
    ) -> None:
        check_dsn(dsn)
        self._dsn = dsn
        self._name = application_name
        self._settings = settings or Settings()
        self._channel = channel(Schema(schema))
        self._ringer = Link(dsn, self._settings, application_name, framed=True)
        self._ringing = Lock()
        self._rung = False
        self._closed = False
        self._changed = Condition()
        self._listener: Listener | None = None

    def wait(self, seconds: float) -> bool:
        """Wait until rung or closed, at most ``seconds``; whether it was rung.

        A ring before the wait counts; several count as one.
        """
        with self._changed:
            if self._listener is None and not self._closed:
                link = Link(self._dsn, self._settings, self._name)
                silence = self._settings.silence_seconds
                self._listener = Listener(link, self._channel, self.poke, silence)
                self._listener.start()
            self._changed.wait_for(lambda: self._rung or self._closed, max(0.0, seconds))
            rung, self._rung = self._rung, False
            return rung and not self._closed

    def poke(self) -> None:
        """Wake whoever waits on this very object."""
        with self._changed:
            self._rung = True
            self._changed.notify_all()

    def ring(self) -> None:
        """Wake whoever waits, in any process.  A lost ring is found by polling."""
        begin = frame.begin_write(self._settings)
        with self._ringing:
            if self._closed:
                return
            try:
                self._ringer.once(begin, workers.ring(), {"channel": self._channel})
            except StoreUnavailable:
                self._ringer.close()

    def close(self) -> None:
        """Stop listening; a waiter returns."""
        with self._changed:
            self._closed = True
            listener, self._listener = self._listener, None
            self._changed.notify_all()
        if listener is not None:
            listener.stop()
        with self._ringing:
            self._ringer.close()


class Listener:
    """A thread that calls ``heard`` for every burst of notifications, and once after each loss."""

    def __init__(
        self, link: Link, channel: str, heard: Callable[[], None], silence_seconds: float
    ) -> None:
        self._silence_seconds = silence_seconds
        self._link = link
        self._channel = channel
        self._heard = heard
        self._stopped = Event()
        self._stop_reader, self._stop_writer = socket.socketpair()
        self._thread = Thread(target=self._run, name="leasebook wake-up", daemon=True)

    def start(self) -> None:
        """Listen from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, wherever it is, and wait for it a little."""
        self._stopped.set()
        self._stop_writer.close()
        self._thread.join(CLOSE_SECONDS_MAX)

    def _run(self) -> None:
        failures = 0
        while not self._stopped.wait(backoff(failures)):
            began = monotonic()
            try:
                self._listen()
            except StoreUnavailable:
                failures = 1 if monotonic() - began > WELL_SECONDS else failures + 1
            finally:
                self._link.close()
        self._stop_reader.close()

    def _listen(self) -> None:
        """Hear until stopped.  Raises StoreUnavailable when the connection is lost.

        Behind a pooler nothing is heard: a session that listens there is lent to others, and the
        notifications of one reach another.
        """
        if self._link.pooled:
            self._link.close()
            self._stopped.wait()
            return
        connection = self._link.connection()
        # A stopped process reads nothing: once its socket is full the server waits for it, with a
        # snapshot in hand that keeps vacuum away.  This bounds the wait, over TCP.
        self._link.say(f"set tcp_user_timeout = {round(self._silence_seconds * 1000)}")
        self._link.say(f'listen "{self._channel}"')
        self._heard()
        with selectors.DefaultSelector() as selector:
            selector.register(connection.pgconn.socket, selectors.EVENT_READ)
            selector.register(self._stop_reader, selectors.EVENT_READ)
            while not self._stopped.is_set():
                selector.select()
                if self._arrived(connection):
                    self._heard()

    def _arrived(self, connection: psycopg.Connection[Row]) -> bool:
        """Read what lies in the socket; whether there was a notification in it."""
        arrived = False
        with sorted_errors():
            connection.pgconn.consume_input()
            while connection.pgconn.notifies() is not None:
                arrived = True
        return arrived
