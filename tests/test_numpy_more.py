"""More of what a NumPy user types: held against NumPy, however tiles are cut; and what is said of what is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples
from test_numpy_habits import arrays, check

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, IndexingError, OutcoreError, ShapeError

Function = Callable[[Any], Any]


def whole(x: Any) -> Any:
    """Numbers from 0 to 6 in the shape of another array."""
    return np.astype(np.abs(np.trunc(x)) % 7, np.int64)


def bits(x: Any) -> Any:
    return x > 0


MORE: dict[str, Function] = {
    "append": lambda x: np.append(x, [[7.0] * x.shape[1]], axis=0),
    "apply_along_axis, nodes": lambda x: np.apply_along_axis(np.median, 1, x),
    "apply_along_axis, a number": lambda x: np.apply_along_axis(lambda row: row[0] - row[-1], 1, x),
    "apply_along_axis, a row": lambda x: np.apply_along_axis(lambda row: np.sort(row)[::-1], 0, x),
    "apply_along_axis, shorter": lambda x: np.apply_along_axis(lambda row: row[:2], 0, x),
    "apply_along_axis, longer": lambda x: np.apply_along_axis(lambda row, n: np.tile(row, n), 1, x, 3),
    "apply_over_axes": lambda x: np.apply_over_axes(np.sum, x, (0, 1)),
    "choose": lambda x: np.choose(whole(x), [x, -x, x[0], 4, 5, 6, 7.5]),
    "choose, wrapped": lambda x: np.choose(whole(x), [x, -x], mode="wrap"),
    "choose, clipped": lambda x: np.choose(whole(x) - 3, [x, -x, 2 * x], mode="clip"),
    "choose, one": lambda x: np.choose(whole(x) * 0, [x]),
    "choose, by rows": lambda x: np.choose(whole(x[0]) % 3, x[:3]),
    "correlate": lambda x: np.correlate(x[0], [1.0, 2.0]),
    "correlate, full": lambda x: np.correlate(x[0], [1.0, 2.0j], "full"),
    "correlate, same": lambda x: np.correlate(x[0], [1.0, 2.0, 4.0, 9.0], "same"),
    "correlate, longer": lambda x: np.correlate(x[0], np.arange(1.0, 10), "same"),
    "delete": lambda x: np.delete(x, [0, 2, 2, -1]),
    "delete, all": lambda x: np.delete(x, slice(None), axis=1),
    "delete, mask": lambda x: np.delete(x, [True, *[False] * (x.shape[0] - 1)], axis=0),
    "delete, run": lambda x: np.delete(x, [1, 2], axis=0),
    "diag_indices_from": lambda x: np.diag_indices_from(x[:3, :3]),
    "diagflat": lambda x: np.diagflat(x, -1),
    "geomspace": lambda x: np.geomspace(np.abs(x) + 1, 1e5, 4),
    "geomspace, below": lambda x: np.geomspace(-np.abs(x[0]) - 1, -3.0, 3, endpoint=False, axis=1),
    "histogram_bin_edges": lambda x: np.histogram_bin_edges(x, 4),
    "histogram_bin_edges, range": lambda x: np.histogram_bin_edges(x, 4, range=(0, 8)),
    "i0": lambda x: np.i0(x / 10),
    "insert": lambda x: np.insert(x, 1, 7),
    "insert, row": lambda x: np.insert(x, -1, x[0], axis=0),
    "insert, rows": lambda x: np.insert(x, 1, x[:, :2].T, axis=1),
    "insert, places": lambda x: np.insert(x, [2, 0, 2], [[1.0], [2.0], [3.0]], axis=0),
    "insert, many": lambda x: np.insert(x, [1, 0] * 40, np.arange(80.0), axis=1),
    "insert, slice": lambda x: np.insert(x, slice(0, 3, 2), -1, axis=0),
    "insert, mask": lambda x: np.insert(x[0, :3], np.asarray([True, False, True]), [8, 9]),
    "insert, several at one": lambda x: np.insert(x[0], [1], [8, 9]),
    "ix_": lambda x: np.ix_(whole(x[0]), x[1] > 0),
    "lexsort": lambda x: np.lexsort((x[0], whole(x[1]), whole(x[2]) % 2)),
    "lexsort of lanes": lambda x: np.lexsort((x, whole(x) % 3), axis=0),
    "lexsort of one": lambda x: np.lexsort(whole(x)),
    "linspace": lambda x: np.linspace(x, x[0] + 3, 5),
    "linspace, open": lambda x: np.linspace(x, 3, 5, endpoint=False, axis=-1),
    "linspace, one": lambda x: np.linspace(x, 3, 1),
    "linspace, steps": lambda x: np.linspace(x[0], 7, 3, retstep=True),
    "linspace, whole": lambda x: np.linspace(x, 9, 4, dtype=np.int64),
    "logspace": lambda x: np.logspace(x / 50, 1, 4, base=2.0),
    "packbits": lambda x: np.packbits(bits(x)),
    "packbits, along": lambda x: np.packbits(bits(x), axis=0, bitorder="little"),
    "ravel_multi_index": lambda x: np.ravel_multi_index((whole(x), whole(x[0])), (7, 9)),
    "ravel_multi_index, modes": lambda x: np.ravel_multi_index(
        (whole(x) - 3, whole(x) * 3), (2, 9), mode=("wrap", "clip"), order="F"
    ),
    "real_if_close": lambda x: np.real_if_close(x + 0j),
    "real_if_close, not": lambda x: np.real_if_close(x + 1j),
    "resize": lambda x: np.resize(x, (3, 17)),
    "resize, less": lambda x: np.resize(x, 2),
    "setxor1d": lambda x: np.setxor1d(np.trunc(x[0] / 20), np.trunc(x[1:] / 20)),
    "sort_complex": lambda x: np.sort_complex(np.trunc(x / 30).ravel() + 1j * np.sin(x).ravel()),
    "sort_complex of lanes": lambda x: np.sort_complex(np.trunc(x / 30) + 1j * np.cos(x)),
    "sort_complex of reals": np.sort_complex,
    "tril_indices_from": lambda x: np.tril_indices_from(x, k=1),
    "triu_indices_from": lambda x: np.triu_indices_from(x, -1),
    "trim_zeros": lambda x: np.trim_zeros(np.trunc(x[0] / 30)),
    "trim_zeros, front": lambda x: np.trim_zeros(np.trunc(x / 40), "f"),
    "trim_zeros, one axis": lambda x: np.trim_zeros(np.trunc(x / 40), axis=1),
    "unpackbits": lambda x: np.unpackbits(np.astype(whole(x) * 37, np.uint8)),
    "unpackbits, along": lambda x: np.unpackbits(np.astype(whole(x), np.uint8), axis=0, bitorder="little", count=-3),
    "unpackbits, more": lambda x: np.unpackbits(np.astype(whole(x), np.uint8), axis=1, count=70),
    "unravel_index": lambda x: np.unravel_index(whole(x) * 4, (3, 2, 5)),
    "unravel_index, columns first": lambda x: np.unravel_index(whole(x), (2, 4), order="F"),
    "unwrap": lambda x: np.unwrap(x / 9, axis=0),
    "unwrap, coarse": lambda x: np.unwrap(x, discont=40.0, period=30.0),
    "unwrap, whole": lambda x: np.unwrap(whole(x), period=4),
    "unwrap, odd": lambda x: np.unwrap(whole(x), period=5),
    "vander": lambda x: np.vander(x[0] / 50, 4, increasing=True),
    "accumulate": lambda x: np.add.accumulate(x, axis=1),
    "accumulate maxima": lambda x: np.maximum.accumulate(x),
    "outer": lambda x: np.subtract.outer(x, x[0]),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", MORE)
@settings(max_examples=6, deadline=None)
@given(given_array=arrays(2, least=3))
def test_more_functions(name: str, given_array: Any) -> None:
    x, tile = given_array
    check(MORE[name], x.astype(np.float64), tile, rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(given_array=arrays(2, nan=True, special=True, least=2), data=st.data())
def test_argpartition_puts_one_element_in_its_place(given_array: Any, data: st.DataObject) -> None:
    x, tile = given_array
    axis = data.draw(st.sampled_from([0, 1, -1]))
    kth = data.draw(st.integers(-x.shape[axis], x.shape[axis] - 1))
    with session():
        order = np.argpartition(oc.rechunk(oc.asarray(x), tile), kth, axis=axis).compute()
    assert np.array_equal(np.sort(order, axis=axis), np.indices(x.shape)[axis])
    chosen = np.take_along_axis(x, order, axis=axis)
    np.testing.assert_array_equal(np.take(chosen, kth, axis=axis), np.take(np.sort(x, axis=axis), kth, axis=axis))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=examples(20), deadline=None)
@given(given_array=arrays(2, nan=True, least=3), density=st.booleans(), weighted=st.booleans(), data=st.data())
def test_histograms_of_several_coordinates(
    given_array: Any, density: bool, weighted: bool, data: st.DataObject
) -> None:
    x, tile = given_array
    x = x.astype(np.float64)
    weights = np.arange(1.0, x.shape[0] + 1) if weighted else None
    bins = data.draw(st.sampled_from([3, [2] * x.shape[1], [[-9.0, 0.0, 2.0, 50.0]] * x.shape[1]]))
    ranges = [(-20.0, 20.0)] * x.shape[1]
    inside = np.isfinite(x).all(axis=1)
    with session(), np.errstate(all="ignore"):
        lazy = oc.rechunk(oc.asarray(x), tile)
        theirs = np.histogramdd(
            x[inside], bins, range=ranges, density=density, weights=None if weights is None else weights[inside]
        )
        ours = np.histogramdd(lazy, bins, range=ranges, density=density, weights=weights)
        np.testing.assert_allclose(ours[0].compute(), theirs[0])
        for edges, expected in zip(ours[1], theirs[1], strict=True):
            np.testing.assert_allclose(edges.compute(), expected)
        y = np.nan_to_num(x)
        for of in (4, [3, 2], [-10.0, 0.0, 4.0, 50.0], [3, [-10.0, 0.0, 8.0]]):
            flat = zip(
                np.histogram2d(oc.asarray(y)[:, 0], y[:, 1], of), np.histogram2d(y[:, 0], y[:, 1], of), strict=True
            )
            for found, expected in flat:
                np.testing.assert_allclose(found.compute(), expected)


def test_the_modified_bessel_function_to_thirteen_digits() -> None:
    x = np.concatenate([np.linspace(-9, 9, 2001), np.geomspace(8, 700, 500), [0.0, np.nan, np.inf]])
    with session(), np.errstate(all="ignore"):
        np.testing.assert_allclose(oc.i0(x).compute()[:-1], np.i0(x)[:-1], rtol=5e-14)


def test_a_vectorized_function_stays_lazy() -> None:
    x = np.arange(12.0).reshape(3, 4)
    with session():
        step = oc.vectorize(lambda a, b: a if a > b else -b, otypes=float)
        lazy = step(oc.asarray(x), x[0])
        assert isinstance(lazy, oc.Array)
        np.testing.assert_array_equal(lazy.compute(), np.vectorize(lambda a, b: a if a > b else -b)(x, x[0]))
        with pytest.raises(ArgumentError, match="2 types"):
            oc.vectorize(divmod, otypes=[int, int])


def test_lazy_arrays_share_no_memory_and_have_types() -> None:
    x = oc.asarray(np.ones(3, dtype=np.float32))
    assert np.may_share_memory(x, x) is False
    assert np.shares_memory(np.ones(3), x) is False
    assert np.can_cast(x, np.float64)
    assert not np.can_cast(x, np.int8)
    assert np.min_scalar_type(x) == np.float32
    assert np.common_type(x, np.ones(2, dtype=np.int8)) == np.common_type(np.ones(3, np.float32), np.ones(2, np.int8))
    path = np.einsum_path("ij,jk,kl->il", oc.zeros((9, 2)), oc.zeros((2, 9)), oc.zeros((9, 3)))
    assert path[0] == np.einsum_path("ij,jk,kl->il", np.zeros((9, 2)), np.zeros((2, 9)), np.zeros((9, 3)))[0]


def along(function: Function) -> Any:
    return oc.apply_along_axis(function, 0, oc.zeros(3))


REFUSED: dict[str, tuple[type[OutcoreError], str, Callable[[], Any]]] = {
    "choose": (IndexingError, r"out of bounds", lambda: oc.choose(oc.asarray([0, 2]), [1, 2]).compute()),
    "choose, one": (IndexingError, r"out of bounds", lambda: oc.choose(oc.asarray([0, 1]), [7]).compute()),
    "choose, below": (IndexingError, r"out of bounds", lambda: oc.choose(oc.asarray([0, -1]), [1, 2]).compute()),
    "ravel": (IndexingError, r"out of bounds", lambda: oc.ravel_multi_index((oc.asarray([3]), [0]), (3, 1)).compute()),
    "unravel": (IndexingError, r"out of bounds", lambda: oc.unravel_index(oc.asarray([6]), (2, 3))[0].compute()),
    "insert": (IndexingError, r"place 4 is out of bounds", lambda: oc.insert(oc.zeros(3), 4, 1)),
    "insert, values": (ShapeError, r"shape \(2,\) for a gap of", lambda: oc.insert(oc.zeros(3), [0, 1, 2], [1, 2])),
    "delete": (IndexingError, r"place 3 is out of bounds", lambda: oc.delete(oc.zeros(3), [0, 3])),
    "delete, mask": (IndexingError, r"mask of shape \(2,\)", lambda: oc.delete(oc.zeros(3), [True, False])),
    "along": (ShapeError, r"gives shape \(2, 3\) of a row", lambda: along(lambda r: np.ones((2, 3)))),
    "along, fails": (ArgumentError, r"failed on a row of 3 ones", lambda: along(lambda r: r[9])),
    "lexsort": (ShapeError, r"2 keys of shapes", lambda: oc.lexsort((oc.zeros(2), oc.zeros(3)))),
    "packbits": (DTypeError, r"not float64", lambda: oc.packbits(oc.zeros(3))),
    "unpackbits": (DTypeError, r"takes uint8", lambda: oc.unpackbits(oc.zeros(3))),
    "unpackbits, count": (ArgumentError, r"count=-9", lambda: oc.unpackbits(oc.zeros(1, dtype="uint8"), count=-9)),
    "geomspace": (ArgumentError, r"a bound is zero", lambda: oc.geomspace(0, 3)),
    "bins": (ArgumentError, r"bins='auto'", lambda: oc.histogram_bin_edges(oc.zeros(3), "auto")),
    "histogramdd": (ArgumentError, r"2 bins and 3 ranges for 3", lambda: oc.histogramdd(oc.zeros((4, 3)), [1, 2])),
    "ix_": (ShapeError, r"not all rows", lambda: oc.ix_(oc.zeros((2, 2)))),
    "trim": (ArgumentError, r"trim='x'", lambda: oc.trim_zeros(oc.zeros(3), trim="x")),
    "argpartition": (IndexingError, r"kth=3", lambda: oc.argpartition(oc.zeros(3), 3)),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_words(name: str) -> None:
    kind, text, call = REFUSED[name]
    with session(), pytest.raises(kind, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda x: np.polyfit(x, x, 2),
            r"numpy\.polyfit of a lazy array is not supported: .*; nearest in outcore: vander",
        ),
        (lambda x: np.put(x, [0], 1), r"numpy\.put .* it changes its argument; nearest in outcore: x\[mask\] = values"),
        (lambda x: np.save("x.npy", x), r"numpy\.save .*store\(\{'x\.npy': x\}\)"),
        (lambda x: np.linalg.tensorinv(x), r"numpy\.linalg\.tensorinv .* or give it x\.compute\(\) \(7\.81 KiB\)"),
        (lambda x: np.gcd(x, x), r"numpy\.gcd of a lazy array is not supported: it has not been written"),
        (lambda x: np.add.reduceat(x, [0]), r"numpy\.add\.reduceat of a lazy array"),
        (lambda x: np.logaddexp2(x, x), r"nearest in outcore: .*logaddexp"),
    ],
)
def test_what_is_absent_names_what_is_near_and_what_computing_takes(call: Function, text: str) -> None:
    with pytest.raises(DTypeError, match=text):
        call(oc.zeros(1000))


def test_other_libraries_may_still_answer_for_their_arrays() -> None:
    class Other:
        def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> str:
            return "theirs"

        def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> str:
            return "theirs too"

    assert np.polyfit(oc.zeros(3), Other(), 1) == "theirs"
    assert np.gcd(oc.zeros(3, dtype="int64"), Other()) == "theirs too"


def test_what_a_mask_of_positions_takes_out_is_one_read(data: Any) -> None:
    x = np.random.default_rng(4).normal(size=1 << 20)
    np.save(data / "x.npy", x)
    gone = np.random.default_rng(5).integers(0, x.size, 500)
    with session():
        lazy = oc.delete(oc.open(data / "x.npy"), gone)
        np.testing.assert_array_equal(lazy.compute(), np.delete(x, gone))
        assert oc.explain(lazy).bytes_read <= x.nbytes
