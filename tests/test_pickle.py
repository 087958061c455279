"""Lazy arrays in other processes: the same values from the same files, or a clear refusal."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import DTypeError, SourceChangedError

VALUES = np.random.default_rng(8).normal(size=(60, 7))

EXPRESSIONS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda x: x,
    "element-wise": lambda x: np.exp(x * 2 - 1) / (x.T.T**2 + 3) > 0.5,
    "views": lambda x: x[::-2, 1:5].T.reshape(2, -1)[:, None] + x[0, 0],
    "casts": lambda x: x.astype("float32").astype("int16") + x.astype("complex64"),
    "reductions": lambda x: x.mean(axis=0) + x.std(axis=0, ddof=1) + x.argmax(axis=0) + x.sum(),
    "products": lambda x: (x.T @ x) @ x.T,
    "concatenated": lambda x: np.concatenate([x, x * 2], axis=1),
    "choices": lambda x: np.where(x > 0, x, -1),
    "memory": lambda x: x + np.arange(7),
}
MADE: dict[str, Callable[[], oc.Array]] = {
    "arange": lambda: oc.arange(3, 30, 4) + 0.5,
    "linspace": lambda: oc.linspace(0, 1, 7, endpoint=False),
    "eye": lambda: oc.eye(4, 5, k=1) * 3j,
    "random": lambda: oc.random.normal((5, 4), seed=3) + oc.random.integers((5, 4), 0, 9, seed=4),
    "full": lambda: oc.full((2, 3), True) & oc.rechunk(oc.ones((2, 3), dtype=bool), (1, 2)),
}


def again(x: oc.Array) -> oc.Array:
    found = pickle.loads(pickle.dumps(x))
    assert isinstance(found, oc.Array)
    return found


@pytest.mark.parametrize("suffix", ["npy", "zarr"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_expressions_over_files(name: str, suffix: str, tmp_path: Path) -> None:
    with session():
        oc.store({tmp_path / f"x.{suffix}": oc.asarray(VALUES)})
        lazy = EXPRESSIONS[name](oc.open(tmp_path / f"x.{suffix}"))
        found = again(lazy)
        assert (found.shape, found.dtype) == (lazy.shape, lazy.dtype)
        np.testing.assert_array_equal(found.compute(), lazy.compute())


@pytest.mark.parametrize("name", MADE)
def test_expressions_over_nothing(name: str) -> None:
    with session():
        lazy = MADE[name]()
        assert again(lazy)._expr.digest == lazy._expr.digest
        np.testing.assert_array_equal(again(lazy).compute(), lazy.compute())


def test_files_in_fortran_order(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.asfortranarray(VALUES))
    with session():
        lazy = oc.open(tmp_path / "x.npy")[3:] * 2
        np.testing.assert_array_equal(again(lazy).compute(), VALUES[3:] * 2)


def test_another_process_computes_the_same(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    with session():
        x = oc.open(tmp_path / "x.npy")
        (tmp_path / "x.pickle").write_bytes(pickle.dumps((x - x.mean(axis=0)) / x.std(axis=0)))
    code = "import pickle, sys, numpy as np; np.save(sys.argv[2], pickle.load(open(sys.argv[1], 'rb')).compute())"
    subprocess.run([sys.executable, "-c", code, tmp_path / "x.pickle", tmp_path / "found.npy"], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), (VALUES - VALUES.mean(axis=0)) / VALUES.std(axis=0))


def test_a_file_that_changed_is_not_taken_for_the_one_that_was_pickled(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    with session():
        pickled = pickle.dumps(oc.open(tmp_path / "x.npy") + 1)
        np.save(tmp_path / "x.npy", VALUES * 2)
        with pytest.raises(SourceChangedError, match=r"x\.npy: it is not the file that the pickled array was of"):
            pickle.loads(pickled)


def test_what_only_this_process_knows_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    with session():
        x = oc.open(tmp_path / "x.npy")
        for lazy in (oc.sort(x[:, 0]), oc.map_blocks(np.sin, x), oc.linalg.inv(x.T @ x)):
            with pytest.raises(DTypeError, match=r"cannot be pickled: .* open the path in the other process"):
                pickle.dumps(lazy)
