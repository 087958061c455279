"""What tests run in child processes: programs that are killed, interrupted, or confined."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from support import workloads
from support.running import forecast, run, session


def compute_transpose(path: str, pool_limit: int) -> None:
    import outcore as oc

    with session(pool_limit=pool_limit):
        oc.compute(oc.open(path).T)


def rss() -> int:
    """Resident bytes now, as the kernel counts them."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def sessions_in_turn(x: str, out: str, limits: list[int]) -> dict[str, Any]:
    """Programs that fill the memory of one session after the other, several rounds; then one is closed."""
    import outcore as oc

    made = [oc.Session(memory_limit=limit, threads=2, progress=False) for limit in limits]
    runs = []
    with contextlib.ExitStack() as stack:
        for one in made:
            stack.enter_context(one)
        for _ in range(2):
            for one in made:
                with one:
                    targets = {f"{out}/sums.npy": oc.open(x).sum(axis=0)}
                    told, done = forecast(targets), run(targets)
                runs.append({"same": told == done, "kept": one.counters()["reserved_bytes"], "rss": rss()})
        filled = rss()
        made[-1].close()
        return {"runs": runs, "freed": filled - rss()}


def sessions_at_once(x: str, limits: list[int], rounds: int) -> list[float]:
    """One thread and one session each."""
    import outcore as oc

    def work(limit: int) -> float:
        with oc.Session(memory_limit=limit, threads=2, progress=False):
            return float(sum(oc.compute(oc.open(x).sum()) for _ in range(rounds)))

    from concurrent.futures import ThreadPoolExecutor  # children that measure their size do without

    with ThreadPoolExecutor(len(limits)) as pool:
        return list(pool.map(work, limits))


def result_beside(x: str, rows: int, memory_limit: int) -> Any:
    """One session's result stays; the other is asked for as much, is refused, and may when the first is gone."""
    import outcore as oc

    part = oc.open(x)[:rows]
    options = {"memory_limit": memory_limit, "threads": 2, "progress": False}
    with oc.Session(**options):
        first = oc.compute(part + 1)
    with oc.Session(**options):
        total = float(oc.compute(part.sum()))
        try:
            oc.compute(part + 2)
        except oc.errors.MemoryLimitError as error:
            refused = error
        held = first.nbytes
        del first
        second = oc.compute(part + 2)
    return {"held": held, "said": str(refused), "smallest": refused.smallest, "right": float(second.sum()) - total}


def long_plan() -> str:
    """An alarm, as Ctrl-C would come, while a program of very many tiles is planned."""
    import outcore as oc

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    side = 400_000
    a, b = (oc.random.uniform((side, side), seed=seed) for seed in range(2))
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        oc.explain((a @ b).sum(axis=0))
    except KeyboardInterrupt:
        return "interrupted"
    return "planned"


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


def long_factorization(x: str, w: str, iterations: int, options: dict[str, int]) -> int:
    """Tasks of a factorization's program."""
    import outcore as oc

    features, left, right = oc.open(x), oc.open(w), oc.ones((10, 100))
    for _ in range(iterations):
        left = left * (features @ right.T) / (left @ right @ right.T)
        right = right * (left.T @ features) / (left.T @ left @ right)
    with oc.Session(threads=2, progress=False, **options):
        return int(oc.explain(left, right).tasks)


def long_chain(folder: str, products: int) -> dict[str, Any]:
    """The plan of a vector multiplied very often, under a limit of this process's."""
    import numpy as np

    import outcore as oc

    np.save(f"{folder}/A.npy", np.eye(1000))
    np.save(f"{folder}/x.npy", np.ones((1000, 1)))
    a, x = oc.open(f"{folder}/A.npy"), oc.open(f"{folder}/x.npy")
    for _ in range(products):
        x = a @ x
    with oc.Session(memory_limit=256 << 20, threads=2, progress=False):
        told = oc.explain(x)
    return {"flops": told.flops, "passes": len(told.passes)}


def interrupted_plan_then_another() -> dict[str, Any]:
    """An alarm, as Ctrl-C would come, while one session plans so much that it holds the turn; then another computes."""
    import outcore as oc

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    x = oc.random.uniform((3_000_000, 50), seed=0)
    lazy = x.sum(axis=0)
    for _ in range(6000):
        lazy = lazy + (x * lazy).sum(axis=0)
    interrupted = False
    with oc.Session(progress=False):
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        try:
            oc.explain(lazy)
        except KeyboardInterrupt:
            interrupted = True
    with oc.Session(progress=False):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(20)  # ends the process if the turn is still taken
        total = float(oc.compute(oc.ones(3).sum()))
        signal.alarm(0)
    return {"interrupted": interrupted, "total": total}


def ingest(source: str, target: str, scratch: str, options: dict[str, Any], told: dict[str, Any]) -> dict[str, int]:
    """Stores the matrix of a file of pairs, or of lines where its name ends in .txt, in a session with `options`."""
    import outcore as oc

    read: Any = oc.sparse.from_edges if source.endswith(".txt") else oc.sparse.from_binary
    with session(Path(scratch), **options) as current:
        print("ready", flush=True)
        made = read(source, target, **told)
        return {"entries": made.nnz, "peak_bytes": current.counters()["peak_bytes"]}


def multiply_sparse(first: str, second: str, target: str, options: dict[str, Any]) -> dict[str, int]:
    """Stores the product of two sparse matrices, in a session with `options`."""
    import outcore as oc

    with session(**options) as current:
        a, b = oc.sparse.open(first), oc.sparse.open(second)
        print("ready", flush=True)
        made = oc.sparse.spgemm(a, b, path=target)
        return {"entries": made.nnz, "peak_bytes": current.counters()["peak_bytes"]}


def cached_file(path: str, count: int, memory_limit: int) -> dict[str, Any]:
    """Reads places all over a file of the numbers from 0 through a cache, and writes all over it."""
    import numpy as np

    import outcore as oc

    random = np.random.default_rng(1)
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False):
        with oc.io.cached(path, mode="r+") as file:
            length = len(file) // 8
            places = random.integers(0, length, count)
            right = bool((file.read_at(8 * places, dtype="int64").ravel() == places).all())
            written = random.permutation(np.unique(random.integers(0, length, 2 * count)))[:count]
            for some in np.array_split(written, 4):
                file.write_at(8 * some, -1 - some)
            file.flush()
        told = file.counters._asdict()
    return {"right": right, "written": int(written.sum()), **told}


def builder(program: str, iterations: str) -> Any:
    """The expression of a workload without its inputs, which the parent has made."""
    make: workloads.Maker = getattr(workloads, program)
    import tempfile  # children that measure their size do without

    with tempfile.TemporaryDirectory() as folder:
        if iterations:
            return make(Path(folder), 0.01, iterations=int(iterations)).build
        return make(Path(folder), 0.01).build


if __name__ == "__main__":
    # A shell's background job, and its children with it, starts with interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    store(*sys.argv[1:])


def long_plan_beside_tiles(x: str, y: str, iterations: int, memory_limit: int) -> dict[str, Any]:
    """The forecast of a long regression, made while the session keeps as many tiles of X as it may."""
    import outcore as oc

    features, labels = oc.open(x), oc.open(y)
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False):
        oc.compute(features.sum())
        weights = oc.zeros((features.shape[1], 1))
        for _ in range(iterations):
            guess = 1 / (1 + oc.exp(-(features @ weights)))
            weights = weights - 1e-6 * (features.T @ (guess - labels))
        return dict(oc.explain(weights).to_dict())


def data_beside_kept_tiles(x: str, own_bytes: int, memory_limit: int) -> list[int]:
    """Resident bytes: with memory full of tiles, beside an array of the caller's made then, and after a plan."""
    import numpy as np

    import outcore as oc

    with oc.Session(memory_limit=memory_limit, threads=2, progress=False):
        oc.compute(oc.open(x).sum(axis=0))
        resident = [rss()]
        data = np.ones(own_bytes // 8)
        resident.append(rss())
        oc.explain(oc.open(x).sum() + float(data[0]))
        return [*resident, rss()]


def data_of_its_own(x: str, own_bytes: int, memory_limit: int) -> list[int]:
    """Budgets of three computations: the second beside an array of the caller's, made after the session was."""
    import numpy as np

    import outcore as oc

    features = oc.open(x)
    budgets = []
    with oc.Session(memory_limit=memory_limit, threads=2, progress=False) as one:
        for own in (0, own_bytes, 0):
            one.clear()
            data = np.ones(own // 8)
            budgets.append(oc.explain(features.sum()).to_dict()["budget_bytes"])
            oc.compute(features.sum(axis=0))
            del data
    return budgets
