"""What tests run in child processes: programs that are killed, interrupted, or confined."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from support import workloads
from support.running import session


def compute_transpose(path: str, pool_limit: int) -> None:
    import outcore as oc

    with session(pool_limit=pool_limit):
        oc.compute(oc.open(path).T)


def store(program: str, inputs: str, out: str, scratch: str, options: str) -> None:
    """Opens everything, says "ready", stores. The parent kills or interrupts from then on."""
    import outcore as oc

    work: Any = getattr(workloads, program)
    given = {name: Path(path) for name, path in json.loads(inputs).items()}
    ready = workloads.Workload(program, given, builder(work))
    with session(Path(scratch), **json.loads(options)):
        targets = ready.targets(Path(out))
        print("ready", flush=True)
        oc.store(targets, overwrite=True)
    print("done", flush=True)


def builder(make: Any) -> Any:
    """The expression of a workload without its inputs, which the parent has made."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        return make(Path(folder), 0.01).build


if __name__ == "__main__":
    store(*sys.argv[1:])
