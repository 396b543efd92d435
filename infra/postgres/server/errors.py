"""The one error of the embedded server."""

from __future__ import annotations


class ServerError(Exception):
    """The embedded server cannot be used.

    `code` is stable and meant for programs; the text names what was refused, what was seen and what
    to do. Codes: `no_binaries`, `data_dir_unusable`, `incompatible_cluster`, `setting_refused`,
    `root_refused`, `init_failed`, `start_failed`, `start_timeout`, `keeper_failed`.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    def __reduce__(self) -> tuple[type[ServerError], tuple[str, str]]:
        return (type(self), (self.code, self.message))
