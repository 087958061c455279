"""Calls that can be gone on with: the table of `test_kills.py`, and the process that forks for them and kills.

A server forks for each call, kills it at random moments until that was often enough, lets it come to its end, and says
what was stored each time that one came to its end.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import multiprocessing
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import outcore as oc
from outcore import _core
from outcore._base import files
from outcore.errors import TargetExistsError
from support import fits
from support.killing import PATHS, ROOT
from support.running import files_below, session

POOL = 40 << 20
HANG_SECONDS = 120
DONE, DONE_BEFORE, FAILED = 0, 3, 4


class Places(NamedTuple):
    """Folders of a call: its inputs, its outputs, and what is no output of the package's."""

    inputs: Path
    out: Path
    beside: Path

    def array(self, name: str) -> oc.Array:
        return oc.open(self.inputs / f"{name}.npy")

    def matrix(self, name: str) -> oc.sparse.SparseMatrix:
        return oc.sparse.open(self.inputs / f"{name}.ocs")


Call = Callable[[Places], Any]


def _stored(name: str, make: Call) -> Call:
    """Stores what is made, to be gone on with."""
    return lambda places: oc.store({places.out / name: make(places)}, resume=True)


def _replaced(make: Call) -> Call:
    """Stores what an iteration with checkpoints gives, over what was there."""

    def call(places: Places) -> None:
        made = make(places)
        arrays = made if isinstance(made, (tuple, list)) else [made]
        lazy = [oc.asarray(array) for array in arrays]
        oc.store({places.out / f"{number}.npy": array for number, array in enumerate(lazy)}, overwrite=True)

    return call


def _loop(places: Places) -> Any:
    A = places.array("A")
    start = oc.ones((A.shape[0], 4))
    return oc.iterate(lambda x: A @ x / oc.linalg.vector_norm(x), start, max_iter=12, checkpoint=2).state


def _ingested(name: str, source: str, **options: Any) -> Call:
    return lambda places: getattr(oc.sparse, name)(
        places.inputs / source, places.out / "a.ocs", side=512, resume=True, **options
    )


def _entries(places: Places) -> Any:
    columns = tuple(places.array(name) for name in ("rows", "columns", "values"))
    return oc.sparse.from_entries(columns, places.out / "a.ocs", side=512, resume=True)


def _ranks(name: str, *given: Any, **options: Any) -> Call:
    return _replaced(lambda places: getattr(oc.sparse, name)(places.matrix("a"), *given, checkpoint=1, **options))


def _solved(name: str, **options: Any) -> Call:
    return _replaced(
        lambda places: getattr(oc.sparse.linalg, name)(places.matrix("s"), places.array("v"), checkpoint=2, **options)[
            0
        ]
    )


def _decomposed(name: str, **options: Any) -> Call:
    return _replaced(lambda places: getattr(oc.sparse.linalg, name)(places.matrix("s"), checkpoint=1, **options))


def _product(places: Places) -> Any:
    return oc.sparse.spgemm(places.matrix("a"), places.matrix("a"), path=places.out / "a.ocs", resume=True)


def _graph_of_entries(places: Places) -> Any:
    ends = places.array("rows"), places.array("columns")
    return oc.graph.from_arrays(*ends, places.out / "g.ocg", directed=False, resume=True)


def _graph_of_networkx(places: Places) -> Any:
    import networkx as nx

    ends = [np.load(places.inputs / f"{name}.npy")[:3000].tolist() for name in ("rows", "columns")]
    graph = nx.Graph(list(zip(*ends, strict=True)))
    return oc.graph.from_networkx(graph, places.out / "g.ocg", resume=True)


def _fit(name: str) -> Call:
    """A fit with checkpoints; the bytes of all that it found, in a file."""

    def call(places: Places) -> None:
        model = fits.fit(name, places.inputs / "fits", 1)
        told = hashlib.sha256()
        for key, value in sorted(vars(model).items()):
            if key.endswith("_") and key != "history_":
                told.update(key.encode())
                told.update(np.asarray(value.compute() if isinstance(value, oc.Array) else value).tobytes())
        (places.beside / "new").write_text(told.hexdigest())
        (places.beside / "new").replace(places.beside / "model")

    return call


CALLS: dict[str, Call] = {
    "store, sort": _stored("y.npy", lambda places: oc.sort(places.array("x"))),
    "store, product": _stored("y.npy", lambda places: places.array("A") @ places.array("A")),
    "store, chunks": _stored("y.zarr", lambda places: places.array("A") @ places.array("A")),
    "iterate": _replaced(_loop),
    "sparse.from_binary": _ingested("from_binary", "a.bin", values=np.float64),
    "sparse.from_edges": _ingested("from_edges", "a.txt", values=True),
    "sparse.from_entries": _entries,
    "sparse.from_mtx": _ingested("from_mtx", "a.mtx"),
    "sparse.from_npz": _ingested("from_npz", "a.npz"),
    "sparse.rmat": lambda places: oc.sparse.rmat(1 << 13, 60_000, places.out / "a.ocs", side=512, resume=True),
    "sparse.spgemm": _product,
    "sparse.als": _ranks("als", 3, 3),
    "sparse.hits": _ranks("hits", 6, 0.0),
    "sparse.label_propagation": _replaced(
        lambda places: oc.sparse.label_propagation(places.matrix("a"), places.array("labels"), 6, checkpoint=1)
    ),
    "sparse.nmf": _ranks("nmf", 3, 4, 0.0),
    "sparse.pagerank": _ranks("pagerank", iterations=8, tol=0.0),
    "sparse.linalg.bicgstab": _solved("bicgstab", rtol=1e-12, maxiter=8),
    "sparse.linalg.cg": _solved("cg", rtol=1e-12, maxiter=8),
    "sparse.linalg.minres": _solved("minres", rtol=1e-12, maxiter=8),
    "sparse.linalg.lsmr": _solved("lsmr", maxiter=8),
    "sparse.linalg.eigsh": _decomposed("eigsh", k=2, tol=1e-3),
    "sparse.linalg.eigs": _decomposed("eigs", k=2, tol=1e-3),
    "sparse.linalg.svds": _decomposed("svds", k=2, tol=1e-3),
    "graph.from_arrays": _graph_of_entries,
    "graph.from_edges": lambda places: oc.graph.from_edges(
        places.inputs / "a.txt", places.out / "g.ocg", weights=True, resume=True
    ),
    "graph.from_networkx": _graph_of_networkx,
    "graph.from_sparse": lambda places: oc.graph.from_sparse(
        places.matrix("a"), places.out / "g.ocg", directed=False, resume=True
    ),
    **{f"learn.{name}": _fit(name) for name in fits.FITS},
}
_BY_ITERATOR = "refused with resume: its entries come from an iterator"
NOT_KILLED = {
    **dict.fromkeys(("sparse.from_anndata", "sparse.from_binsparse", "sparse.from_csr"), _BY_ITERATOR),
    "sparse.from_table": "Parquet files alone can be gone on with, and pyarrow is not among the packages of tests",
}


def public_names() -> set[str]:
    """The public functions that take `resume` or `checkpoint`, by name or among their options."""
    from outcore import learn

    modules: tuple[ModuleType, ...] = (oc, oc.sparse, oc.sparse.linalg, oc.graph, learn)
    names = {"graph.from_arrays"}
    for module in modules:
        prefix = module.__name__.removeprefix("outcore").lstrip(".")
        for name in module.__all__:
            function = getattr(module, name)
            if not callable(function):
                continue
            try:
                parameters = inspect.signature(function).parameters
            except ValueError:
                continue
            options = "options" in parameters and str(parameters["options"].annotation)
            if {"resume", "checkpoint"} & set(parameters) or options in ("Unpack[Settings]", "Unpack[Options]"):
                names.add(f"{prefix}.{name}".lstrip("."))
    return names


# -- the process that kills --------------------------------------------------------------------------------------------


def digests(*folders: Path) -> dict[str, str]:
    """What has a name in the folders, by its bytes, also of volumes."""
    named = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            relative = path.relative_to(folder)
            if path.is_file() and not any(part.startswith(".") for part in relative.parts) and path.name != "new":
                told = hashlib.sha256()
                for block in files.in_blocks(path):
                    told.update(block)
                named[str(relative)] = told.hexdigest()
    return named


class Killer:
    """A call that is begun, killed and gone on with in folders of its own."""

    def __init__(self, name: str, inputs: Path, home: Path, beside: Path) -> None:
        self._name = name
        self._scratch = home / "scratch"
        self._places = Places(inputs, home / "out", beside)
        for folder in (self._places.out, self._scratch, beside):
            folder.mkdir(exist_ok=True)
        self._log = beside.parent / "log"

    def _call(self) -> None:
        status = FAILED
        try:
            with warnings.catch_warnings(), session(self._scratch, pool_limit=POOL):
                warnings.simplefilter("ignore")
                CALLS[self._name](self._places)
            status = DONE
        except TargetExistsError:
            status = DONE_BEFORE
        except BaseException:
            self._log.write_text(traceback.format_exc())
        finally:
            os._exit(status)

    def _in_a_thread(self) -> None:
        """Numbers that are drawn in a thread that forks are drawn by its forks again; this one is new."""
        thread = threading.Thread(target=self._call)
        thread.start()
        thread.join()

    def begin(self, seconds: float | None) -> int:
        """The status of a fork that makes the call; it is killed after so many seconds."""
        process = multiprocessing.get_context("fork").Process(target=self._in_a_thread)
        process.start()
        process.join(HANG_SECONDS if seconds is None else seconds)
        process.kill()
        process.join()
        assert process.exitcode is not None
        if process.exitcode == FAILED or (seconds is None and process.exitcode < 0):
            raise AssertionError(self._log.read_text() if self._log.exists() else f"status {process.exitcode}")
        return process.exitcode

    def stored(self) -> dict[str, str]:
        """What has a name in the folders of outputs, by its bytes."""
        return digests(self._places.out, self._places.beside)

    def clear(self, *, work: bool = False) -> None:
        """Removes what is stored; with `work` what could be gone on with too, as `outcore clean --resumable`."""
        for folder in (self._places.out, self._places.beside):
            for path in folder.iterdir():
                if not path.name.startswith("."):
                    _core.remove(str(path))
        if work:
            _core.remove_unfinished(str(self._scratch), lost_only=False)
            _core.remove_unfinished(str(self._places.out), lost_only=False)

    def run(self, kills: int) -> dict[str, Any]:
        """Kills the call so often; what it stored where it came to its end, and what is left."""
        began = time.monotonic()
        assert self.begin(None) == DONE
        seconds, expected = time.monotonic() - began, self.stored()
        assert expected, "nothing is stored"
        self.clear()
        moments, killed, false, other = random.Random(self._name), 0, [], []
        is_last = False
        while not is_last:
            is_last = killed >= kills
            status = self.begin(None if is_last else moments.uniform(0, seconds))
            killed += status == -signal.SIGKILL
            stored = self.stored()
            if not stored.items() <= expected.items():
                false.append(stored)
            if status in (DONE, DONE_BEFORE):
                if stored != expected:
                    other.append(stored)
                # Killed in its very last moment it was done, and there may be a folder that says so.
                self.clear(work=status == DONE_BEFORE)
        left = files_below(self._scratch) + files_below(self._places.out)
        return {"killed": killed, "seconds": seconds, "false": false, "other": other, "left": left}


def serve(inputs: str) -> None:
    for line in sys.stdin:
        name, home, beside, kills = json.loads(line)
        try:
            said = Killer(name, Path(inputs), Path(home), Path(beside)).run(kills)
        except BaseException:
            said = {"error": traceback.format_exc()}
        print(json.dumps(said), flush=True)


class Server:
    """The process that forks and kills."""

    def __init__(self, inputs: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.killable", str(inputs)],
            env=os.environ | {"PYTHONPATH": PATHS},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )

    def kill(self, name: str, home: Path, beside: Path, kills: int) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([name, str(home), str(beside), kills]), file=self._process.stdin, flush=True)
        return dict(json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def save(folder: Path) -> None:
    """Writes the inputs of all calls."""
    import scipy.sparse

    random_numbers, order = np.random.default_rng(3), 1 << 13
    np.save(folder / "x.npy", random_numbers.integers(-(2**62), 2**62, 700_000))
    np.save(folder / "A.npy", random_numbers.normal(size=(700, 700)))
    np.save(folder / "v.npy", random_numbers.random(order))
    labels = np.full(order, -1)
    labels[::100] = np.arange(len(labels[::100])) % 3
    np.save(folder / "labels.npy", labels)
    places = random_numbers.integers(0, order, (2, 60_000))
    matrix = scipy.sparse.coo_array((random_numbers.random(60_000), tuple(places)), shape=(order, order)).tocsr()
    diagonal = np.full(order, 30.0) + random_numbers.random(order)
    diagonal[:6] = np.linspace(1000.0, 500.0, 6)
    with session(folder):
        stored = oc.sparse.from_scipy(matrix, folder / "a.ocs", side=512)
        definite = (matrix + matrix.T + scipy.sparse.diags_array(diagonal)).tocsr()
        oc.sparse.from_scipy(definite, folder / "s.ocs", side=512)
        oc.sparse.to_edges(stored, folder / "a.txt")
        oc.sparse.to_edges(stored, folder / "a.bin", binary=True)
        oc.sparse.to_mtx(stored, folder / "a.mtx")
    scipy.sparse.save_npz(folder / "a.npz", matrix, compressed=False)
    entries = matrix.tocoo()
    arrays = {"rows": entries.coords[0], "columns": entries.coords[1], "values": entries.data}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / "fits").mkdir()
    which = random_numbers.integers(0, 4, 400)
    table = random_numbers.random((4, 6))[which] * 6 + random_numbers.random((400, 6)) * 3
    np.save(folder / "fits" / "x.npy", table)
    np.save(folder / "fits" / "y.npy", (which + (random_numbers.random(400) < 0.2) > 1).astype(np.int64))
    shutil.rmtree(folder / "scratch", ignore_errors=True)


if __name__ == "__main__":
    serve(sys.argv[1])
