"""``python -m leasebook.infra.cli``, the same as the command ``leasebook``."""

from __future__ import annotations

from .commands import main

if __name__ == "__main__":
    main(prog_name="leasebook")
