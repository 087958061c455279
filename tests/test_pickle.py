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
import scipy.sparse
from support.running import session

import outcore as oc
from outcore._lazy.pickled import rebuilt, steps_of
from outcore.errors import (
    ArgumentError,
    DTypeError,
    MemoryLimitError,
    OutcoreError,
    ShapeError,
    SourceChangedError,
)

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
ALGORITHMS: dict[str, Callable[[Any], Any]] = {
    "sort": lambda x: oc.sort(x[:, 0]),
    "sorted columns": lambda x: oc.sort(x, axis=0, descending=True),
    "sorted lanes": lambda x: oc.sort(x, axis=1),
    "argsort": lambda x: oc.argsort(x, axis=0) + oc.argsort(x, axis=1),
    "sort_by": lambda x: oc.sort_by(x[:, 0], x[:, 1])[1],
    "medians of many groups": lambda x: oc.groupby(oc.round(x[:, 0] * 10).astype("int64") % 50).median(x),
    "take": lambda x: oc.take(x, np.array([3, 1, 3, 59]), axis=0),
    "masks": lambda x: x[x[:, 0] > 0],
    "nonzero": lambda x: oc.nonzero(x[:, 0] > 0)[0],
    "scans": lambda x: np.cumsum(x, axis=0) + oc.cumulative_prod(x, axis=1),
    "quantiles": lambda x: oc.quantile(x, [0.1, 0.5], axis=0) + oc.median(x, axis=0),
    "quantile of all": lambda x: oc.quantile(x, 0.25),
    "medians of groups": lambda x: oc.groupby(np.arange(60) % 3).median(x),
    "groups": lambda x: oc.groupby(np.arange(60) % 3).mean(x),
    "bincount": lambda x: np.bincount(oc.abs(x[:, 0] * 3).astype("int64")),
    "searchsorted": lambda x: oc.searchsorted(oc.sort(x[:, 0]), x[:, 1], side="right"),
    "inverse": lambda x: oc.linalg.inv(x.T @ x),
    "solve": lambda x: oc.linalg.solve(x.T @ x, x.T),
    "svd": lambda x: oc.linalg.svd(x, full_matrices=False)[0],
    "qr": lambda x: oc.linalg.qr(x)[1],
    "eigh": lambda x: oc.linalg.eigh(x.T @ x)[1],
    "det": lambda x: oc.linalg.det(x.T @ x),
    "fourier": lambda x: oc.fft.fft(x, axis=0),
    "real fourier": lambda x: oc.fft.irfft(oc.fft.rfft(x, axis=0), axis=0),
    "summary": lambda x: oc.stats.summary(x).mean,
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


@pytest.mark.parametrize("name", ALGORITHMS)
def test_operators_by_algorithms(name: str, tmp_path: Path) -> None:
    """Each is built anew of its recipe: the same node here, the same bits in another process."""
    np.save(tmp_path / "x.npy", VALUES)
    with session():
        lazy = ALGORITHMS[name](oc.open(tmp_path / "x.npy"))
        pickled = pickle.dumps(lazy)
        found = pickle.loads(pickled)
        assert found._expr.digest == lazy._expr.digest or "memory" in name or _has_memory(lazy)
        values = lazy.compute()
    with session():
        np.testing.assert_array_equal(pickle.loads(pickled).compute(), values)


def test_another_process_builds_them_all(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    with session():
        x = oc.open(tmp_path / "x.npy")
        matrix = oc.sparse.from_scipy(scipy.sparse.csr_array(np.where(VALUES > 1, VALUES, 0)), tmp_path / "a.ocs")
        lazy = {name: make(x) for name, make in ALGORITHMS.items()}
        lazy["product"] = (matrix * 2.0).tril() @ oc.asarray(np.ones((7, 3)))
        lazy["transposed product"] = matrix.T.product(oc.asarray(np.ones((60, 3))), "max_plus")
        (tmp_path / "pickles").write_bytes(pickle.dumps(lazy))
        expected = dict(zip(lazy, oc.compute(*lazy.values()), strict=True))
    code = (
        "import pickle, sys, numpy as np\n"
        "lazy = pickle.load(open(sys.argv[1], 'rb'))\n"
        "np.savez(sys.argv[2], **{name: x.compute() for name, x in lazy.items()})"
    )
    command = [sys.executable, "-c", code, tmp_path / "pickles", tmp_path / "found.npz"]
    subprocess.run(command, check=True)
    found = np.load(tmp_path / "found.npz")
    assert set(found) == set(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)


FOUND: dict[str, Callable[[Any], Any]] = {
    "a mask of all axes": lambda x: x[x > 0],
    "a mask of a masked array": lambda x: x[x > 0][x[x > 0] > 1],
    "nonzero of all axes": lambda x: oc.nonzero(x > 0)[1],
    "a computed mask": lambda x: x[oc.sort(x[:, 0]) > 0],
    "unique": lambda x: oc.unique_values(oc.round(x)),
    "groups by lazy keys": lambda x: oc.groupby(oc.round(x[:, 0])).mean(x),
    "groups by text": lambda x: oc.groupby(np.array(list("abc") * 20)).sum(x),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_found_in_scratch_goes_by_value(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    with session():
        lazy = FOUND[name](oc.open(tmp_path / "x.npy"))
        pickled = pickle.dumps(lazy)
        values = lazy.compute()
    with session():
        np.testing.assert_array_equal(pickle.loads(pickled).compute(), values)


def test_much_in_scratch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    monkeypatch.setattr("outcore._lazy.pickled._PROCESS_BYTES_MAX", 100)
    with session():
        lazy = oc.unique_values(oc.open(tmp_path / "x.npy"))
        with pytest.raises(DTypeError, match=r"of a lazy array are known to this process only .*: store\(\) it"):
            pickle.dumps(lazy)


@pytest.mark.parametrize("name", ["qr", "singular values", "lstsq"])
def test_factors_of_tall_matrices(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(2).normal(size=(600_000, 5)))
    with session():
        x = oc.open(tmp_path / "x.npy")
        lazy = {
            "qr": lambda: oc.linalg.qr(x)[0][::1000],
            "singular values": lambda: oc.linalg.svdvals(x),
            "lstsq": lambda: oc.linalg.lstsq(x, x[:, 0])[0],
        }[name]()
        found = again(lazy)
        assert found._expr.digest == lazy._expr.digest
        np.testing.assert_array_equal(found.compute(), lazy.compute())


def _has_memory(lazy: oc.Array) -> bool:
    return any(step.call == "memory" for step in steps_of(lazy._expr))


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
        for lazy in (oc.map_blocks(np.sin, x), oc.sort(oc.map_blocks(np.sin, x), axis=0)):
            with pytest.raises(DTypeError, match=r"cannot be pickled: .* open the path in the other process"):
                pickle.dumps(lazy)


def test_steps_that_no_array_was_pickled_as_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", VALUES)
    with session():
        steps = steps_of(oc.fft.fft(oc.open(tmp_path / "x.npy"), axis=0)._expr)
        last = steps[-1]
        builder, parameters, result = last.arguments
        for arguments in (
            (builder, parameters[:-1], result),
            (builder, [*parameters[:1], 2**63, *parameters[2:]], result),
            (builder, [{}, *parameters[1:]], result),
            (builder, parameters, 7),
            ("tally", ["min", 3, "int64"], 0),
            ("nothing", [], 0),
            (),
        ):
            with pytest.raises(OutcoreError):
                rebuilt([*steps[:-1], last._replace(arguments=arguments)])
        for changed in (last._replace(inputs=(9,)), last._replace(call="no such"), last._replace(inputs=())):
            with pytest.raises(OutcoreError):
                rebuilt([*steps[:-1], changed])


def test_errors_are_of_the_function_that_was_called(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.zeros((2, 500_009)))
    with session():
        pickled = pickle.dumps(oc.fft.fft(oc.open(tmp_path / "x.npy"), axis=1))
    with session(pool_limit=3 << 20):
        lazy = pickle.loads(pickled)
        with pytest.raises(MemoryLimitError, match=r"^fft: needs"):
            lazy.compute()


SPARSE: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda a: a,
    "transposed": lambda a: a.T,
    "changed": lambda a: ((a * 2.0).tril() > 0.5) * 3,
    "of a vector": lambda a: a.multiply(np.arange(40.0)[:, None]),
    "pattern": lambda a: a != 0,
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_matrices(name: str, tmp_path: Path) -> None:
    whole = scipy.sparse.random(40, 40, density=0.2, random_state=3, format="csr")
    with session():
        matrix = SPARSE[name](oc.sparse.from_scipy(whole, tmp_path / "a.ocs"))
        pickled = pickle.dumps((matrix, matrix @ oc.asarray(np.ones((40, 2)))))
        expected = matrix.to_scipy().toarray()
    with session():
        again, product = pickle.loads(pickled)
        assert again.dtype == expected.dtype
        np.testing.assert_array_equal(again.to_scipy().toarray(), expected)
        np.testing.assert_allclose(product.compute(), expected @ np.ones((40, 2)))


def test_sparse_matrices_that_no_other_process_finds_are_refused(tmp_path: Path) -> None:
    whole = scipy.sparse.random(40, 40, density=0.2, random_state=3, format="csr")
    with session():
        a = oc.sparse.from_scipy(whole, tmp_path / "a.ocs")
        for matrix in (a @ a, (a @ a) * 2, oc.sparse.from_scipy(whole)):
            with pytest.raises(DTypeError, match=r"A\.copy\(path=\.\.\.\) stores it"):
                pickle.dumps(matrix)
            with pytest.raises(DTypeError, match=r"cannot be pickled: store\(\) it, or its operands"):
                pickle.dumps(matrix @ oc.asarray(np.ones(40)))
        graph = oc.graph.from_arrays([0, 1], [1, 2])
        with pytest.raises(ArgumentError, match=r"in scratch .* give it a path"):
            pickle.dumps(graph)
        pickled = pickle.dumps(a)
        oc.sparse.from_scipy(whole * 2, tmp_path / "a.ocs", overwrite=True)
        with pytest.raises(SourceChangedError, match=r"a\.ocs: it is not the file"):
            pickle.loads(pickled)


def test_dense_operands_that_do_not_go_with_their_matrix_are_refused(tmp_path: Path) -> None:
    whole = scipy.sparse.random(40, 40, density=0.2, random_state=3, format="csr")
    with session():
        matrix = oc.sparse.from_scipy(whole, tmp_path / "a.ocs").multiply(np.arange(40.0)[:, None])
        make, (path, digest, nodes, dtype) = matrix._content.__reduce__()
        for place, step in enumerate(nodes[0]):
            if step.call == "entry_operand":
                _, elements, kind = step.arguments
                nodes[0][place] = step._replace(arguments=((3, 1), elements[:24], kind))
        with pytest.raises(ShapeError, match=r"a dense operand of 3 elements for a matrix of shape \(40, 40\)"):
            make(path, digest, nodes, dtype)


def test_a_matrix_in_a_file_of_others_is_stored_first(tmp_path: Path) -> None:
    scipy.sparse.save_npz(tmp_path / "u.npz", scipy.sparse.eye(5, format="csr"), compressed=False)
    with session():
        matrix = oc.sparse.open(tmp_path / "u.npz")
        for lazy in (matrix, matrix.T, matrix * 2):
            with pytest.raises(DTypeError, match=r"A\.copy\(path=\.\.\.\) stores it"):
                pickle.dumps(lazy)
