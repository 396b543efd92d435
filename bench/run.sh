#!/usr/bin/env bash
# Measures leasebook beside PGQueuer and the bare limit; `bench/run.sh --help` tells the rest.
# The peers live in an environment of their own, so that leasebook's never holds them.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.bench/venv
made=$venv/made

if [ ! -e "$made" ] || [ pyproject.toml -nt "$made" ] || [ bench/requirements.txt -nt "$made" ] ||
    ! "$venv/bin/python" -c '' 2>/dev/null
then
    echo "making $venv; only the first time" >&2
    python=.venv/bin/python
    [ -x "$python" ] || python=python3
    if command -v uv >/dev/null; then
        uv venv --quiet --clear --python "$python" "$venv"
        uv pip install --quiet --python "$venv/bin/python" -e '.[embedded]' -r bench/requirements.txt
    else
        "$python" -m venv --clear "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
            -e '.[embedded]' -r bench/requirements.txt
    fi
    touch "$made"
fi
exec "$venv/bin/python" -m bench "$@"
