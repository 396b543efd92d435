"""A server that asks every client for its password, and keeps what it was told."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable
from threading import Thread

NEGOTIATIONS = (80877103, 80877104)  # SSL and GSS encryption: both are declined.
CLEARTEXT = b"R" + struct.pack("!ii", 8, 3)


class AskingServer:
    """Listens on 127.0.0.1; ``told`` are the start-up parameters and passwords, in order."""

    def __init__(self) -> None:
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._door.getsockname()[1])
        self.told: list[bytes] = []
        Thread(target=self._welcome, daemon=True).start()

    def close(self) -> None:
        """Stop listening."""
        self._door.close()

    def _welcome(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            with client, client.makefile("rb") as read:
                self._ask(client, read.read)

    def _ask(self, client: socket.socket, read: Callable[[int], bytes]) -> None:
        while head := read(4):
            (size,) = struct.unpack("!i", head)
            body = read(size - 4)
            if struct.unpack("!i", body[:4])[0] in NEGOTIATIONS:
                client.sendall(b"N")
                continue
            self.told.append(body[4:])
            client.sendall(CLEARTEXT)
            if read(1):
                (size,) = struct.unpack("!i", read(4))
                self.told.append(read(size - 4))
            return
