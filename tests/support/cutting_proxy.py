"""A proxy before PostgreSQL that can swallow the answer to a commit."""

from __future__ import annotations

import selectors
import socket
from contextlib import suppress
from threading import Thread
from types import TracebackType
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

BYTES = 65_536


class CuttingProxy:
    """Passes everything on, until `cut_next_commit`: then the server commits and nobody is told."""

    def __init__(self, dsn: str) -> None:
        parts = {
            key: str(value) for key, value in conninfo_to_dict(dsn).items() if value is not None
        }
        host, port = parts.pop("host", "127.0.0.1"), int(parts.pop("port", "5432"))
        self._family = socket.AF_UNIX if host.startswith("/") else socket.AF_INET
        self._target = f"{host}/.s.PGSQL.{port}" if host.startswith("/") else (host, port)
        self._door = socket.create_server(("127.0.0.1", 0))
        self.cut_next_commit = False
        self.dsn = make_conninfo(
            **{**parts, "host": "127.0.0.1", "port": str(self._door.getsockname()[1])}
        )
        Thread(target=self._welcome, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._door.close()

    def _welcome(self) -> None:
        while True:
            try:
                client, _ = self._door.accept()
            except OSError:
                return
            server = socket.socket(self._family)
            server.connect(self._target)
            Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        cutting = False
        with suppress(OSError), client, server, selectors.DefaultSelector() as selector:
            selector.register(client, selectors.EVENT_READ, server)
            selector.register(server, selectors.EVENT_READ, client)
            while True:
                for key, _ in selector.select():
                    source = client if key.fileobj is client else server
                    data = source.recv(BYTES)
                    if not data or (cutting and source is server):
                        return
                    if source is client and self.cut_next_commit and b"commit" in data:
                        self.cut_next_commit, cutting = False, True
                    (server if source is client else client).sendall(data)
