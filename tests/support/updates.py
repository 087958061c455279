"""An array that one process updates again and again, and another reads: each state tells whether it is one."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

START, WIDTH, CHUNKS, GROWTH = 10, 6, (4, 4), 3
ROWS_MAX = 3000


def make(path: Path, compression: str | None = None) -> None:
    import outcore as oc

    values = np.zeros((START, WIDTH), "int32")
    oc.store({path: values}, chunks={path: CHUNKS}, compression=compression, overwrite=True)


def flaw(array: Any) -> str | None:
    """What is wrong with a state: its inner rows hold one number, rows that were appended theirs."""
    inner = np.unique(array[1 : START - 1])
    if len(inner) != 1 or (array[[0, START - 1]] != 0).any():
        return f"a mixture of {inner}"
    rows = len(array) - START
    if rows % GROWTH or not (array[START:] == 1 + np.arange(rows)[:, None] // GROWTH).all():
        return f"rows {array[START:, 0]}"
    return None


def update(path: str) -> None:
    """Updates the array until this process is killed, or the array is large; a line for each update."""
    import outcore as oc

    with oc.Session(memory_limit=8 << 30, threads=1, progress=False):
        for _ in range(ROWS_MAX // GROWTH):
            array = oc.open(path)
            value = int(array[1, 0].item()) + 1
            oc.store({oc.region(path, np.s_[1 : START - 1]): value})
            os.write(1, b"done\n")
            rows = len(array) - START
            if rows < ROWS_MAX:
                oc.append(path, np.full((GROWTH, WIDTH), 1 + rows // GROWTH, "int32"), axis=0)
                os.write(1, b"done\n")


def fork_updates(path: str) -> None:
    """For each line of input a process that updates the array; its number is printed."""
    import outcore  # noqa: F401

    for _ in sys.stdin:
        process = os.fork()
        if process == 0:
            update(path)
            os._exit(0)
        os.write(1, f"process {process}\n".encode())
        os.waitpid(process, 0)


def watch(path: str, end: str) -> None:
    """Reads the array until there is a file `end`; prints how often, or what is wrong."""
    import outcore as oc
    from outcore.errors import SourceChangedError

    count = 0
    with oc.Session(memory_limit=8 << 30, threads=1, progress=False):
        print("ready", flush=True)
        while not Path(end).exists():
            try:
                array = oc.open(path).compute()
            except SourceChangedError:
                continue
            wrong = flaw(array)
            if wrong:
                print(wrong, flush=True)
                return
            count += 1
            time.sleep(0.001)
    print(count, flush=True)


if __name__ == "__main__":
    {"fork_updates": fork_updates, "watch": watch}[sys.argv[1]](*sys.argv[2:])
