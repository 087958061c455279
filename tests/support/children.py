"""What tests run in child processes: programs that are killed, interrupted, or confined."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from support import workloads
from support.running import session


def compute_transpose(path: str, pool_limit: int) -> None:
    import outcore as oc

    with session(pool_limit=pool_limit):
        oc.compute(oc.open(path).T)


def store(program: str, iterations: str, inputs: str, out: str, scratch: str, options: str) -> None:
    """Opens everything, says "ready", stores. The parent kills or interrupts from then on."""
    import outcore as oc

    given = {name: Path(path) for name, path in json.loads(inputs).items()}
    work = workloads.Workload(program, given, builder(program, iterations))
    with session(Path(scratch), **json.loads(options)):
        targets = work.targets(Path(out))
        print("ready", flush=True)
        oc.store(targets, overwrite=True)
    print("done", flush=True)


def builder(program: str, iterations: str) -> Any:
    """The expression of a workload without its inputs, which the parent has made."""
    make: workloads.Maker = getattr(workloads, program)
    with tempfile.TemporaryDirectory() as folder:
        if iterations:
            return make(Path(folder), 0.01, iterations=int(iterations)).build
        return make(Path(folder), 0.01).build


if __name__ == "__main__":
    store(*sys.argv[1:])
