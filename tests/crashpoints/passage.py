"""The only way from a client to its server: it counts statements and strikes at one of them.

A statement is one exchange of the protocol: what the client sends up to a Query or a Sync, and what
the server answers up to ReadyForQuery.  One connection is served at a time, by whoever calls, so
that nothing happens between a strike and what comes of it.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from typing import BinaryIO

from attrs import frozen
from psycopg.conninfo import conninfo_to_dict, make_conninfo

TEXT_CHARS_MAX = 60
#: Cleartext, MD5, and the first two steps of SASL: the client has to say something.
ASKED_TO_PROVE = (3, 5, 10, 11)


class Fault(StrEnum):
    """What happens at a point."""

    KILLED = "client killed"
    TERMINATED = "backend terminated"
    LOST = "answer lost"


@frozen
class Point:
    """Before a statement reaches the server, or ``after`` the server's answer, which nobody hears.

    ``number`` counts from 1.
    """

    fault: Fault
    number: int
    after: bool

    def __str__(self) -> str:
        return f"{self.fault} {'after' if self.after else 'before'} statement {self.number}"


class Passage:
    """Listens at ``dsn`` and passes on to the server.

    ``strike`` is called at ``point`` with the process id of the server's side; then the connection
    is over.  Later ones pass untouched and uncounted.  ``statements`` are the texts so far,
    ``commits`` the numbers of those by which the server committed, ``backend`` the process id of
    the server's side now.
    """

    def __init__(self, dsn: str, point: Point | None, strike: Callable[[int], None]) -> None:
        parts = {key: str(value) for key, value in conninfo_to_dict(dsn).items() if value}
        host, port = parts.pop("host", "127.0.0.1"), int(parts.pop("port", "5432"))
        self._family = socket.AF_UNIX if host.startswith("/") else socket.AF_INET
        self._target = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
        self._point = point
        self._strike = strike
        self.struck = False
        self.backend = 0
        self.statements: list[str] = []
        self.commits: list[int] = []
        self.door = socket.create_server(("127.0.0.1", 0))
        plain = {"sslmode": "disable", "gssencmode": "disable"}
        here = {"host": "127.0.0.1", "port": str(self.door.getsockname()[1])}
        self.dsn = make_conninfo(**{**parts, **plain, **here})

    def close(self) -> None:
        """Let nobody else pass."""
        self.door.close()

    def asked(self) -> None:
        """Called before a statement goes on to the server."""

    def answered(self) -> None:
        """Called when the server has answered, before the client hears of it."""

    def serve(self) -> None:
        """Accept the connection that waits at the door and serve it to its end."""
        client, _ = self.door.accept()
        with client, socket.socket(self._family) as server:
            server.connect(self._target)
            # Who was killed hangs up in the middle of anything.
            with (
                client.makefile("rwb") as asks,
                server.makefile("rwb") as answers,
                suppress(ConnectionError),
            ):
                self._serve(asks, answers)  # type: ignore[arg-type]

    def _serve(self, client: BinaryIO, server: BinaryIO) -> None:
        self.backend = backend = _greeting(client, server)
        while request := _until(client, b"QSX"):
            if request[:1] == b"X":
                _send(server, request)
                return
            self._note(request)
            self.asked()
            if self._is_reached(after=False):
                self._hit(backend)
                if self._point is not None and self._point.fault is Fault.TERMINATED:
                    _send(client, server.read())  # Its last words, which say why.
                return
            _send(server, request)
            answer = _until(server, b"Z")
            self.answered()
            if b"COMMIT\0" in answer and not self.struck:
                self.commits.append(len(self.statements))
            if self._is_reached(after=True):
                self._hit(backend)
                return
            _send(client, answer)

    def _note(self, request: bytes) -> None:
        if not self.struck:
            self.statements.append(_text(request))

    def _is_reached(self, *, after: bool) -> bool:
        point = self._point
        if self.struck or point is None:
            return False
        return (point.number, point.after) == (len(self.statements), after)

    def _hit(self, backend: int) -> None:
        self.struck = True
        self._strike(backend)


def _greeting(client: BinaryIO, server: BinaryIO) -> int:
    """Pass everything on until the server is ready; the process id that it tells."""
    backend = 0
    # The client's first message has a length and no type.
    size = _exactly(client, 4)
    _send(server, size + _exactly(client, int.from_bytes(size) - 4))
    while message := _message(server):
        _send(client, message)
        match message[:1]:
            case b"R" if int.from_bytes(message[5:9]) in ASKED_TO_PROVE:
                _send(server, _message(client))
            case b"K":
                backend = int.from_bytes(message[5:9])
            case b"Z":
                return backend
            case _:
                pass
    raise ConnectionError("the server did not let the client in")


def _send(target: BinaryIO, message: bytes) -> None:
    target.write(message)
    target.flush()


def _until(source: BinaryIO, kinds: bytes) -> bytes:
    """Messages up to one of these kinds; what came before the end of the stream."""
    whole = b""
    while message := _message(source):
        whole += message
        if message[:1] in kinds:
            break
    return whole


def _message(source: BinaryIO) -> bytes:
    """One message: its type, its length, its body.  Nothing at the end of the stream."""
    if not (kind := source.read(1)):
        return b""
    size = _exactly(source, 4)
    return kind + size + _exactly(source, int.from_bytes(size) - 4)


def _exactly(source: BinaryIO, size: int) -> bytes:
    whole = b""
    while len(whole) < size:
        if not (part := source.read(size - len(whole))):
            raise ConnectionError("the stream ended within a message")
        whole += part
    return whole


def _text(request: bytes) -> str:
    """The beginning of a statement, for people."""
    text = request[5:]
    if request[:1] == b"P":
        text = text.partition(b"\0")[2]
    words = text.partition(b"\0")[0].decode("utf-8", "replace").split()
    return " ".join(words)[:TEXT_CHARS_MAX]
