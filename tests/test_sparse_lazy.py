"""Sparse matrices whose entries a formula changes as they pass by: products, files and streams of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import outcore as oc
from outcore.errors import ArgumentError, UnsupportedFormatError

SIDE = 512


def random_matrix(rows: int, columns: int, density: float = 0.02) -> Any:
    """Entries at random places; SciPy's own would draw from a permutation of all places."""
    random = np.random.default_rng(3)
    count = int(rows * columns * density)
    places = random.integers(0, rows, count), random.integers(0, columns, count)
    return scipy.sparse.csr_array((random.random(count), places), (rows, columns))


def session(**options: Any) -> oc.Session:
    return oc.Session(progress=False, **options)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "number": lambda A: A * 2.0,
    "triangle": lambda A: A.tril(),
    "both": lambda A: (A * 2.0).tril(-3),
    "row": lambda A: A * np.arange(1.0, A.shape[1] + 1),
    "column": lambda A: A.multiply(np.arange(1.0, A.shape[0] + 1)[:, None]),
    "powers": lambda A: abs(A.power(2)).astype(np.float32),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("is_turned", [False, True])
def test_products_have_the_bits_of_products_of_a_stored_matrix(tmp_path: Path, name: str, is_turned: bool) -> None:
    matrix = random_matrix(3000, 2500)
    with session():
        A = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", side=SIDE)
        lazy = CHANGES[name](A.T if is_turned else A)
        stored = lazy.T.copy(path=tmp_path / "b.ocs").T if is_turned else lazy.copy(path=tmp_path / "b.ocs")
        X = np.random.default_rng(0).random((lazy.shape[1], 5))
        expected = (stored @ X).compute()
        assert lazy.nnz == stored.nnz
    for options in ({"threads": 1}, {"threads": 3}, {"pool_limit": 12 << 20}):
        with session(**options):
            B = oc.sparse.open(tmp_path / "a.ocs")
            again = CHANGES[name](B.T if is_turned else B)
            assert (again @ X).compute().tobytes() == expected.tobytes()
            assert np.array_equal(again.to_scipy().toarray(), stored.to_scipy().toarray())


def test_a_changed_matrix_is_read_once_and_nothing_is_written(tmp_path: Path) -> None:
    matrix = random_matrix(20_000, 20_000, 0.005)
    X = np.random.default_rng(0).random((20_000, 4))
    with session():
        oc.sparse.from_scipy(matrix, tmp_path / "a.ocs")
    with session(scratch=tmp_path) as current:
        A = oc.sparse.open(tmp_path / "a.ocs")
        before = current.counters()
        lazy = (A * 2.0).tril() @ X
        assert current.counters()["bytes_read"] == before["bytes_read"]
        said = oc.explain({tmp_path / "y.npy": lazy})
        done = oc.store({tmp_path / "y.npy": lazy})
        assert said.exact
        assert (said.bytes_read, said.bytes_written) == (done.bytes_read, done.bytes_written)
        size = (tmp_path / "a.ocs").stat().st_size
        assert size - (64 << 10) <= done.bytes_read <= size + (64 << 10)
        assert done.bytes_written < (tmp_path / "y.npy").stat().st_size + 4096, "its last page is written whole"
        np.testing.assert_allclose(np.load(tmp_path / "y.npy"), scipy.sparse.tril(matrix * 2.0) @ X)


@pytest.mark.parametrize("threads", [1, 3])
def test_a_stored_matrix_is_a_result_beside_arrays(tmp_path: Path, threads: int) -> None:
    matrix = random_matrix(20_000, 20_000, 0.005)
    with session():
        oc.sparse.from_scipy(matrix, tmp_path / "a.ocs")
    with session(threads=threads):
        A = oc.sparse.open(tmp_path / "a.ocs")
        targets = {tmp_path / "b.ocs": A * 3.0, tmp_path / "s.npy": A.sum(axis=1)}
        said, done = oc.explain(targets), oc.store(targets)
        assert (said.bytes_read, said.bytes_written) == (done.bytes_read, done.bytes_written)
        size = (tmp_path / "a.ocs").stat().st_size
        assert done.bytes_read <= size + (64 << 10), "one read for both"
        made = oc.sparse.open(tmp_path / "b.ocs")
        assert made.nbytes == A.nbytes
        assert (made.to_scipy() != matrix * 3.0).nnz == 0
        np.testing.assert_allclose(np.load(tmp_path / "s.npy"), matrix.sum(axis=1))
        bound, fewer = oc.explain({tmp_path / "c.ocs": A.tril()}), oc.store({tmp_path / "c.ocs": A.tril()})
        assert said.exact
        assert not bound.exact
        assert fewer.bytes_written <= bound.bytes_written
        assert (oc.sparse.open(tmp_path / "c.ocs").to_scipy() != scipy.sparse.tril(matrix)).nnz == 0


def test_a_file_has_the_same_bytes_at_every_limit_and_number_of_threads(tmp_path: Path) -> None:
    matrix = random_matrix(20_000, 6000, 0.02)
    with session():
        A = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", side=1024)
        written = (A + A.tril()).copy(path=tmp_path / "first.ocs").path.read_bytes()
        canonical = oc.sparse.from_scipy(matrix + scipy.sparse.tril(matrix), tmp_path / "scipy.ocs", side=1024)
        assert written == canonical.path.read_bytes(), "as if its entries had been handed over"
    for number, options in enumerate(({"threads": 1}, {"threads": 4}, {"pool_limit": 32 << 20})):
        with session(**options):
            B = oc.sparse.open(tmp_path / "a.ocs")
            again = (B + B.tril()).copy(path=tmp_path / f"{number}.ocs")
            assert again.path.read_bytes() == written


def test_patterns_and_empty_results(tmp_path: Path) -> None:
    matrix = random_matrix(700, 700)
    with session():
        A = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", side=64)
        pattern = (A > 0.5).astype(np.int32)
        assert np.array_equal(pattern.to_scipy().toarray(), (matrix > 0.5).astype(np.int32).toarray())
        none = (A * 2.0).tril(-701)
        assert none.nnz == 0
        assert list(none.blocks()) == []
        assert not (none @ np.ones(700)).compute().any()
        assert oc.sparse.open(none.copy(path=tmp_path / "none.ocs").path).nnz == 0
        assert (A - A).nnz == 0
        assert (A - A).copy(path=tmp_path / "zero.ocs").nnz == 0
        nothing = oc.sparse.from_coo([], [], np.zeros(0), (5, 5), tmp_path / "nothing.ocs")
        assert (nothing * 2).nnz == (nothing + nothing).nnz == 0


def test_formulas_that_are_the_same_for_all_entries(tmp_path: Path) -> None:
    matrix = random_matrix(90, 90)
    with session():
        A = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", side=64).astype(np.uint8)
        assert (A == 300).nnz == (A > 300).nnz == (A < -1).nnz == 0
        B = oc.sparse.open(tmp_path / "a.ocs")
        assert B.tril(2**63).nnz == B.triu(-(10**30)).nnz == B.nnz
        assert B.tril(-(10**30)).nnz == 0


def test_nothing_is_made_before_it_is_read(tmp_path: Path) -> None:
    matrix = random_matrix(700, 700)
    with session() as current:
        A = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", side=64)
        before = current.counters()["bytes_written"]
        B = ((A + A.tril()) * 3.0).triu(1).maximum(A)
        assert current.counters()["bytes_written"] == before
        expected = scipy.sparse.triu((matrix + scipy.sparse.tril(matrix)) * 3.0, 1).maximum(matrix)
        assert np.array_equal(B.toarray(), expected.toarray())
        assert current.counters()["bytes_written"] > before


def test_matrices_in_tiles_of_other_sides_go_together(tmp_path: Path) -> None:
    matrix, other = random_matrix(900, 800), random_matrix(900, 800).power(2)
    with session():
        A = oc.sparse.from_scipy(matrix, tmp_path / "a.ocs", side=64)
        B = oc.sparse.from_scipy(other, tmp_path / "b.ocs", side=256)
        assert np.array_equal((A + B).toarray(), (matrix + other).toarray())
        assert np.array_equal(((A * 2.0) - B.tril()).toarray(), (matrix * 2.0 - scipy.sparse.tril(other)).toarray())


def test_what_cannot_be_stored_is_refused(tmp_path: Path) -> None:
    with session():
        A = oc.sparse.from_scipy(random_matrix(90, 90), tmp_path / "a.ocs", side=64)
        with pytest.raises(UnsupportedFormatError, match=r"\.ocs"):
            oc.store({tmp_path / "a.npy": A * 2.0})
        with pytest.raises(ArgumentError, match=r"is no array; outcore\.store"):
            oc.compute(A * 2.0)
        with pytest.raises(FileExistsError):
            oc.store({tmp_path / "a.ocs": A * 2.0})
        with pytest.raises(ArgumentError, match=r"resume=True.*b\.ocs"):
            oc.store({tmp_path / "b.ocs": A * 2.0}, resume=True)
        for call in (
            lambda: A > 1j,
            lambda: A.power(1j),
            lambda: A.power(A),
            lambda: A.tril(None),
            lambda: A.triu("x"),
        ):
            with pytest.raises(ArgumentError):
                call()
        assert oc.sparse.open(tmp_path / "a.ocs").nnz == A.nnz


def test_a_failing_disk_leaves_no_half_written_matrix(tmp_path: Path) -> None:
    with session():
        oc.sparse.from_scipy(random_matrix(3000, 3000), tmp_path / "a.ocs", side=SIDE)
    for number in range(1, 5):
        with session(faults=f"write:{number}"):
            A = oc.sparse.open(tmp_path / "a.ocs")
            try:
                A.tril(path=tmp_path / "b.ocs")
            except OSError:
                assert not (tmp_path / "b.ocs").exists()
            else:
                (tmp_path / "b.ocs").unlink()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["a.ocs"]
