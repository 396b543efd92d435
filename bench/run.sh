#!/usr/bin/env bash
# Measures leasebook beside other queues and the bare limit; `bench/run.sh --help` tells the rest.
# leasebook has an environment of its own here, as each peer has, so that theirs never meet.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.bench/venv
made=$venv/made

if [ ! -e "$made" ] || [ pyproject.toml -nt "$made" ] || [ bench/requirements/common.txt -nt "$made" ] ||
    ! "$venv/bin/python" -c '' 2>/dev/null
then
    echo "making $venv; only the first time" >&2
    python=.venv/bin/python
    [ -x "$python" ] || python=python3
    if command -v uv >/dev/null; then
        uv venv --quiet --clear --python "$python" "$venv"
        uv pip install --quiet --python "$venv/bin/python" -e '.[embedded]' -r bench/requirements/common.txt
    else
        "$python" -m venv --clear "$venv"
        "$venv/bin/python" -m pip install --quiet --disable-pip-version-check \
            -e '.[embedded]' -r bench/requirements/common.txt
    fi
    touch "$made"
fi
exec "$venv/bin/python" -m bench "$@"
