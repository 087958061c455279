"""What a NumPy user types: NumPy's functions give of lazy arrays what they give of its own, however tiles are cut."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session
from support.sizes import examples

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, OutcoreError, ShapeError

Function = Callable[[Any], Any]

DTYPES = ("int32", "uint8", "float32", "float64")
SPECIAL = (0.0, -0.0, 1.0, -2.5, np.inf, -np.inf)


@st.composite
def arrays(draw: st.DrawFn, ndim: int, special: bool = False, nan: bool = False, least: int = 1) -> Any:
    """Small arrays, and the tile they are cut by."""
    shape = tuple(draw(st.integers(least, 7)) for _ in range(ndim))
    dtype = draw(st.sampled_from(DTYPES))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    values = (random.normal(size=shape) * 50).astype(np.int64)
    x = np.abs(values).astype(dtype) if dtype == "uint8" else values.astype(dtype)
    if x.dtype.kind == "f":
        x = (x + random.random(shape)).astype(dtype)
        if special:
            x[random.random(shape) < 0.2] = random.choice(SPECIAL)
        if nan:
            x[random.random(shape) < 0.3] = np.nan
    return x, tuple(draw(st.integers(1, length)) for length in shape)


def check(call: Function, x: Any, tile: tuple[int, ...], rtol: float = 1e-5) -> None:
    """The same of a lazy array, cut into tiles, as of NumPy's; both refuse, or neither."""
    lazy = oc.rechunk(oc.asarray(x), tile)
    with np.errstate(all="ignore"), session():
        expected, found = call(x), call(lazy)
        several = isinstance(expected, (list, tuple))
        for theirs, ours in zip(expected, found, strict=True) if several else [(expected, found)]:
            assert isinstance(ours, oc.Array), type(ours)
            value = ours.compute()
            assert value.shape == np.shape(theirs)
            np.testing.assert_allclose(value, theirs, rtol=rtol, atol=1e-5 if value.dtype == np.float32 else 1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(
    "name", ["nansum", "nanprod", "nanmean", "nanvar", "nanstd", "nanmin", "nanmax", "nancumsum", "nancumprod", "ptp"]
)
@settings(max_examples=15, deadline=None)
@given(given_array=arrays(2, nan=True), axis=st.sampled_from([None, 0, 1]))
def test_reductions_that_pass_over_nan(name: str, given_array: Any, axis: int | None) -> None:
    x, tile = given_array
    if name in ("nanprod", "nancumprod"):
        x = np.sign(x)
    check(lambda array: getattr(np, name)(array, axis=axis), x.astype(np.float64), tile)
    if not name.startswith("nancum"):
        check(lambda array: getattr(np, name)(array, axis=axis, keepdims=True), x.astype(np.float64), tile)


@settings(max_examples=15, deadline=None)
@given(given_array=arrays(2, nan=True), axis=st.sampled_from([0, 1]), name=st.sampled_from(["nanargmin", "nanargmax"]))
def test_places_of_extremes_that_pass_over_nan(given_array: Any, axis: int, name: str) -> None:
    x, tile = given_array
    x = np.where(np.isnan(x.astype(np.float64)).all(axis=axis, keepdims=True), 1, x)
    check(lambda array: getattr(np, name)(array, axis=axis), x, tile)


@settings(max_examples=15, deadline=None)
@given(given_array=arrays(2, special=True, nan=True))
def test_nan_and_infinities_become_numbers(given_array: Any) -> None:
    x, tile = given_array
    check(np.nan_to_num, x, tile)
    check(lambda array: np.nan_to_num(array, nan=7.0, posinf=8.0, neginf=-9.0), x, tile)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=15, deadline=None)
@given(given_array=arrays(2, nan=True), axis=st.sampled_from([None, 0, 1]), seed=st.integers(0, 1000))
def test_reductions_of_what_a_mask_chooses(given_array: Any, axis: int | None, seed: int) -> None:
    x, tile = given_array
    mask = np.random.default_rng(seed).random(x.shape) < 0.6
    for reduce in (np.sum, np.prod, np.mean, np.any, np.all):
        y = np.sign(np.nan_to_num(x)) if reduce is np.prod else x
        check(lambda array, reduce=reduce: reduce(array, axis=axis, where=mask), y, tile)
    for reduce in (np.var, np.std):
        check(lambda array, reduce=reduce: reduce(array, axis=axis, where=mask), np.nan_to_num(x), tile, rtol=1e-3)


@settings(max_examples=15, deadline=None)
@given(given_array=arrays(2, special=True, nan=True), near=st.floats(0, 1e-4), equal_nan=st.booleans())
def test_what_is_close_or_equal(given_array: Any, near: float, equal_nan: bool) -> None:
    x, tile = given_array
    y = x.astype(np.float64) * (1 + near)
    with session():
        lazy = oc.rechunk(oc.asarray(x), tile)
        assert np.array_equal(np.isclose(lazy, y, equal_nan=equal_nan).compute(), np.isclose(x, y, equal_nan=equal_nan))
        assert bool(np.allclose(lazy, y, equal_nan=equal_nan)) == np.allclose(x, y, equal_nan=equal_nan)
        assert bool(oc.array_equal(lazy, x, equal_nan=equal_nan)) == np.array_equal(x, x, equal_nan=equal_nan)
        assert not bool(np.array_equal(lazy, x[:, :1].repeat(9, axis=1)))
        assert bool(np.array_equiv(lazy, x[:1])) == np.array_equiv(x, x[:1])


@settings(max_examples=examples(25), deadline=None)
@given(given_array=arrays(2, least=3), data=st.data())
def test_padding(given_array: Any, data: st.DataObject) -> None:
    x, tile = given_array
    mode = data.draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    widths = data.draw(st.tuples(*[st.tuples(st.integers(0, 2), st.integers(0, 2))] * 2))
    check(lambda array: np.pad(array, widths, mode), x, tile)
    check(lambda array: np.pad(array, 1, mode), x, tile)
    if mode == "constant":
        check(lambda array: np.pad(array, widths, mode, constant_values=((3, 4), (5, 6))), x, tile)


ARRANGED: dict[str, Function] = {
    "rot90": lambda x: np.rot90(x),
    "rot90 twice": lambda x: np.rot90(x, 2),
    "rot90 back": lambda x: np.rot90(x, -1, axes=(1, 2)),
    "flipud": np.flipud,
    "fliplr": np.fliplr,
    "swapaxes": lambda x: np.swapaxes(x, 0, 2),
    "hstack": lambda x: np.hstack([x, x]),
    "vstack": lambda x: np.vstack([x, x]),
    "dstack": lambda x: np.dstack([x[0], x[0]]),
    "column_stack": lambda x: np.column_stack([x[0], x[0, :, 0]]),
    "atleast_1d": lambda x: np.atleast_1d(x[0, 0, 0]),
    "atleast_2d": lambda x: np.atleast_2d(x[0, 0]),
    "atleast_3d": lambda x: np.atleast_3d(x[0]),
    "atleast_3d of a row": lambda x: np.atleast_3d(x[0, 0]),
    "array_split": lambda x: np.array_split(x, 3, axis=1),
    "array_split at": lambda x: np.array_split(x, [1, -1], axis=2),
    "split": lambda x: np.split(x, [2]),
    "kron": lambda x: np.kron(x[0], x[0]),
    "select": lambda x: np.select([x < 3, x < 9], [x, 10 * x], 7),
    "piecewise": lambda x: np.piecewise(x, [x < 0, x > 5], [lambda v: v * 2, 3, lambda v: v]),
}


@pytest.mark.parametrize("name", ARRANGED)
@settings(max_examples=8, deadline=None)
@given(given_array=arrays(3))
def test_arranging(name: str, given_array: Any) -> None:
    check(ARRANGED[name], *given_array)


@settings(max_examples=examples(25), deadline=None)
@given(given_array=arrays(2, least=3), edge_order=st.sampled_from([1, 2]), axis=st.sampled_from([None, 0, 1]))
def test_gradients(given_array: Any, edge_order: int, axis: int | None) -> None:
    x, tile = given_array
    x = x.astype(np.float64)
    check(lambda array: np.gradient(array, axis=axis, edge_order=edge_order), x, tile)
    check(lambda array: np.gradient(array, 0.5, axis=axis, edge_order=edge_order), x, tile)
    places = [np.cumsum(np.arange(1, length + 1) ** 1.5) for length in x.shape]
    spacing = places if axis is None else [places[axis]]
    check(lambda array: np.gradient(array, *spacing, axis=axis, edge_order=edge_order), x, tile)


@settings(max_examples=examples(25), deadline=None)
@given(given_array=arrays(1), kernel=arrays(1), mode=st.sampled_from(["full", "same", "valid"]))
def test_convolution(given_array: Any, kernel: Any, mode: Any) -> None:
    x, tile = given_array
    weights = kernel[0].astype(np.float64)
    check(lambda array: np.convolve(array, weights, mode), x.astype(np.float64), tile)


@settings(max_examples=examples(25), deadline=None)
@given(given_array=arrays(2, special=True, nan=True), points=arrays(1, least=2), right=st.booleans())
def test_interpolation_and_bins(given_array: Any, points: Any, right: bool) -> None:
    x, tile = given_array
    xp = np.unique(points[0].astype(np.float64))
    fp = np.cos(xp)
    check(lambda array: np.interp(array, xp, fp), x.astype(np.float64), tile)
    check(lambda array: np.interp(array, xp, fp, left=-9.0, right=9.0), x.astype(np.float64), tile)
    check(lambda array: np.digitize(array, xp, right=right), x, tile)
    check(lambda array: np.digitize(array, xp[::-1], right=right), x, tile)


@settings(max_examples=15, deadline=None)
@given(given_array=arrays(2, least=2))
def test_integrals_and_weighted_means(given_array: Any) -> None:
    x, tile = given_array
    x = x.astype(np.float64)
    weights = np.arange(1.0, x.shape[1] + 1)
    check(lambda array: np.trapezoid(array, dx=0.5, axis=0), x, tile)
    check(lambda array: np.trapezoid(array, weights, axis=1), x, tile)
    check(lambda array: np.average(array, axis=1, weights=weights), x, tile)
    check(lambda array: np.average(array, weights=np.abs(x) + 1), x, tile)
    check(lambda array: np.percentile(array, [0, 30, 100], axis=0), x, tile)


SUBSCRIPTS = (
    *(
        "ij->ji",
        "ij->",
        "ij->j",
        "ij",
        "ii->i",
        "ii",
        "iji->j",
        "ij,jk->ik",
        "ij,kj->ik",
        "ij,ij->ij",
        "ij,ij->i",
        "ij,ij",
    ),
    *(
        "ij,j->i",
        "i,j->ij",
        "bij,bjk->bik",
        "bij,bik->bjk",
        "ij,jk,kl->il",
        "ij,ik,il->jkl",
        "ij,jk,k->i",
        "ij,kl->ijkl",
    ),
    *("ij,jj->i", "ijk,jkl->il", "i,i,i->", ",ij->ij", "ij,jk->ki", "ab,bc,cd,de->ae"),
)


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_sums_of_products_by_index(subscripts: str, seed: int) -> None:
    random = np.random.default_rng(seed)
    lengths = {label: int(random.integers(1, 6)) for label in "abcdeijkl"}
    terms = subscripts.split("->")[0].split(",")
    operands = [random.normal(size=tuple(lengths[label] for label in term)) for term in terms]
    first = operands[0]

    def call(array: Any) -> Any:
        return np.einsum(subscripts, array, *operands[1:])

    check(call, first, tuple(int(random.integers(1, length + 1)) for length in first.shape), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@settings(max_examples=examples(25), deadline=None)
@given(given_array=arrays(2, least=2), rowvar=st.booleans(), far=st.sampled_from([0.0, 1e8]))
def test_covariance_of_data_far_from_zero(given_array: Any, rowvar: bool, far: float) -> None:
    x, tile = given_array
    x = x.astype(np.float64) + far
    check(lambda array: np.cov(array, rowvar=rowvar), x, tile, rtol=1e-6)
    check(lambda array: np.cov(array, rowvar=rowvar, ddof=0), x, tile, rtol=1e-6)
    varied = x + np.random.default_rng(1).normal(size=x.shape)
    check(lambda array: np.corrcoef(array, rowvar=rowvar), varied, tile, rtol=1e-5)


def test_covariance_reads_its_data_once_and_a_few_rows(data: Any) -> None:
    x = np.random.default_rng(2).normal(size=(1 << 17, 32))
    np.save(data / "x.npy", x)
    with session():
        lazy = oc.cov(oc.open(data / "x.npy"), rowvar=False)
        said = oc.explain(lazy)
        np.testing.assert_allclose(lazy.compute(), np.cov(x, rowvar=False), rtol=1e-10, atol=1e-12)
    assert said.bytes_read < 1.01 * x.nbytes


def test_numbers_are_shown_rounded_and_filled_in() -> None:
    x = np.arange(6.0).reshape(2, 3) / 7
    with session():
        lazy = oc.asarray(x)
        assert f"{lazy.mean():.3f}" == f"{x.mean():.3f}"
        assert f"{lazy}" == str(lazy)
        with pytest.raises(ShapeError, match=r"exactly one element"):
            format(lazy, ".2f")
        assert round(lazy.sum() * 7) == 15
        np.testing.assert_array_equal(lazy.round(2).compute(), x.round(2))
        np.testing.assert_allclose(lazy.std(ddof=1).compute(), x.std(ddof=1))
        np.testing.assert_array_equal(lazy.cumsum(axis=1).compute(), x.cumsum(axis=1))
        np.testing.assert_array_equal(lazy.cumprod().compute(), x.cumprod())
        assert lazy.tolist() == x.tolist()
        for ours, theirs in zip(divmod(lazy, 0.25), divmod(x, 0.25), strict=True):
            np.testing.assert_array_equal(ours.compute(), theirs)
        filled = np.ones((2, 3))
        filled += lazy
        np.testing.assert_array_equal(filled, 1 + x)
        assert np.add(x, lazy, out=filled) is filled
        whole = np.ones((2, 3), dtype=np.int64)
        with pytest.raises(DTypeError, match=r"float64 does not go into an out= of int64"):
            whole += lazy
        with pytest.raises(ShapeError, match=r"shape \(2, 3\) for an out= of shape \(3,\)"):
            np.add(lazy, 1, out=np.ones(3))
        with pytest.raises(DTypeError, match=r"immutable"):
            np.add(x, x, out=lazy)


def test_arguments_may_be_named_as_numpy_names_them() -> None:
    x = np.random.default_rng(5).normal(size=(3, 8))
    with session():
        lazy = oc.asarray(x)
        np.testing.assert_allclose(np.cov(m=lazy, y=x[:1], rowvar=True).compute(), np.cov(x, x[:1]))
        np.testing.assert_array_equal(np.rot90(m=lazy, k=3, axes=(0, 1)).compute(), np.rot90(x, 3))
        np.testing.assert_array_equal(np.array_split(ary=lazy, indices_or_sections=3, axis=1)[1].compute(), x[:, 3:6])
        np.testing.assert_array_equal(np.convolve(lazy[0], v=[1.0, 2.0]).compute(), np.convolve(x[0], [1.0, 2.0]))
        with pytest.raises(DTypeError, match=r"numpy.cov: .*'fweights'"):
            np.cov(lazy, fweights=[1] * 8)


REFUSED: dict[str, tuple[type[OutcoreError], str, Callable[[], Any]]] = {
    "pad": (ShapeError, r"3 elements along axis 0 of \(3,\)", lambda: oc.pad(oc.zeros(3), 3, "reflect")),
    "mode": (ArgumentError, r"'mean' is none of", lambda: oc.pad(oc.zeros(3), 3, "mean")),  # type: ignore[arg-type]
    "widths": (ArgumentError, r"from 0 on", lambda: oc.pad(oc.zeros(3), -1)),
    "split": (ShapeError, r"\(3,\) is not 2 equal parts", lambda: oc.split(oc.zeros(3), 2)),
    "convolve": (ArgumentError, r"1000 and 900 elements", lambda: oc.convolve(oc.zeros(1000), oc.zeros(900))),
    "interp": (ShapeError, r"shape \(2,\) with values of shape \(3,\)", lambda: oc.interp(1.0, [0, 1], [1, 2, 3])),
    "digitize": (ArgumentError, r"neither rise nor fall", lambda: oc.digitize(1.0, [0, 2, 1])),
    "gradient": (ShapeError, r"shorter than 2", lambda: oc.gradient(oc.zeros((1, 3)), axis=0)),
    "average": (
        ShapeError,
        r"\(2,\) do not lie along axis 0 of \(3, 2\)",
        lambda: oc.average(oc.zeros((3, 2)), axis=0, weights=oc.ones(2)),
    ),
    "cov": (ShapeError, r"more than two axes", lambda: oc.cov(oc.zeros((2, 2, 2)))),
    "einsum": (ShapeError, r"'j' is 2 long and 3 long", lambda: oc.einsum("ij,jk", oc.ones((2, 2)), oc.ones((3, 2)))),
    "einsum, terms": (ArgumentError, r"2 terms in 'i,j' and 1 arrays", lambda: oc.einsum("i,j", oc.ones(2))),
    "select": (ArgumentError, r"1 conditions and 2 choices", lambda: oc.select([oc.ones(2)], [1, 2])),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused_in_words(name: str) -> None:
    kind, text, call = REFUSED[name]
    with session(), pytest.raises(kind, match=text):
        call()


SHORT: dict[str, Function] = {
    "append": lambda x: np.append(x, x[:1], axis=0),
    "append to all": lambda x: np.append(x, x),
    "delete": lambda x: np.delete(x, 1, axis=1),
    "delete several": lambda x: np.delete(x, [0, -1], axis=0),
    "delete a slice": lambda x: np.delete(x, slice(None, None, 2), axis=1),
    "diagonal": np.diagonal,
    "diagonal above": lambda x: np.diagonal(x, 1),
    "diagonal below": lambda x: np.diagonal(x, -2),
    "diagonal of others": lambda x: np.diagonal(np.broadcast_to(x, (2, *x.shape)), 1, 0, 2),
    "diag of a matrix": lambda x: np.diag(x, 1),
    "diag of a row": lambda x: np.diag(x[0], -1),
    "inner": lambda x: np.inner(x, x),
    "vdot": lambda x: np.vdot(x, x),
    "cross": lambda x: np.cross(x[:, :3], x[:1, :3]),
    "extract": lambda x: np.extract(x > 2, x),
    "flatnonzero": lambda x: np.flatnonzero(x > 2),
    "sinc": lambda x: np.sinc(np.trunc(x) / 2),
    "angle": lambda x: np.angle(x + 1j),
    "angle in degrees": lambda x: np.angle(x * 1j, deg=True),
    "fix": np.fix,
    "polyval": lambda x: np.polyval([2.0, -1.0, 0.5], x),
    "isposinf": lambda x: np.isposinf(x / 0.0),
    "isneginf": lambda x: np.isneginf(x / 0.0),
    "isreal": lambda x: np.isreal(x + (x > 2) * 1j),
    "iscomplex": lambda x: np.iscomplex(x + (x > 2) * 1j),
    "hsplit": lambda x: np.hsplit(x, [1, 2]),
    "hsplit of a row": lambda x: np.hsplit(x[0], [1]),
    "vsplit": lambda x: np.vsplit(x, [2]),
    "meshgrid": lambda x: np.meshgrid(x[0], x[1]),
    "histogram": lambda x: np.histogram(x, 5),
    "histogram within": lambda x: np.histogram(x, bins=[-5.0, 0.0, 7.0], weights=np.abs(x)),
    "bincount": lambda x: np.bincount(np.astype(np.abs(x).ravel(), np.int64)),
    "union1d": lambda x: np.union1d(x[0], x[1]),
    "intersect1d": lambda x: np.intersect1d(x[0], x[:2]),
    "setdiff1d": lambda x: np.setdiff1d(x, x[0]),
    "unique": np.unique,
    "unique with counts": lambda x: np.unique(np.trunc(x / 20), return_counts=True),
    "unique with inverse": lambda x: np.unique(np.trunc(x / 20), return_inverse=True),
    "block": lambda x: np.block([[x, x], [x, x + 1]]),
    "rollaxis": lambda x: np.rollaxis(x, 1),
    "broadcast_arrays": lambda x: np.broadcast_arrays(x, x[:1]),
    "concat": lambda x: np.concat([x, x], axis=1),
    "unstack": lambda x: np.unstack(x, axis=1),
    "permute_dims": lambda x: np.permute_dims(x, (1, 0)),
    "matrix_transpose": np.matrix_transpose,
    "copy": np.copy,
    "ediff1d": lambda x: np.ediff1d(x, to_end=x[0]),
    "take_along_axis": lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1),
    "cumulative_sum": lambda x: np.cumulative_sum(x, axis=1, include_initial=True),
    "deg2rad": np.deg2rad,
    "degrees": np.degrees,
    "fmax": lambda x: np.fmax(np.where(x > 0, x, np.nan), x + 1),
    "fmin": lambda x: np.fmin(x, np.where(x > 0, x - 1, np.nan)),
    "float_power": lambda x: np.float_power(np.abs(x), 0.5),
    "fmod": lambda x: np.fmod(x, 3.5),
    "fmod by less": lambda x: np.fmod(x, -7.0),
    "heaviside": lambda x: np.heaviside(np.trunc(x / 10), 0.5),
    "modf": np.modf,
    "divmod": lambda x: np.divmod(x, 7.0),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", SHORT)
@settings(max_examples=6, deadline=None)
@given(given_array=arrays(2, least=3))
def test_functions_that_are_a_line(name: str, given_array: Any) -> None:
    x, tile = given_array
    check(SHORT[name], x.astype(np.float64), tile)


def test_what_numpy_has_and_we_do_not_is_known() -> None:
    """NumPy's functions that raise TypeError of lazy arrays. One that is written leaves the list."""
    from outcore._numpy.absent import ABSENT
    from outcore._numpy.protocol import _FUNCTIONS

    functions = {name: getattr(np, name) for name in dir(np)}
    missing = {name for name, of in functions.items() if hasattr(of, "_implementation") and of not in _FUNCTIONS}
    assert missing == set(ABSENT), sorted(missing ^ set(ABSENT))


@st.composite
def selections(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    def part(length: int) -> Any:
        bound = st.one_of(st.none(), st.integers(-length - 1, length + 1))
        steps = st.sampled_from([None, 1, 2, 3, -1, -2])
        return draw(st.one_of(st.integers(-length, length - 1), st.builds(slice, bound, bound, steps)))

    parts = [part(length) for length in shape[: draw(st.integers(1, len(shape)))]]
    return (*parts, ...) if draw(st.booleans()) else tuple(parts)


@settings(max_examples=examples(120), deadline=None)
@given(given_array=arrays(3, special=True, nan=True), data=st.data())
def test_assignment_makes_a_new_value_behind_the_name(given_array: Any, data: st.DataObject) -> None:
    x, tile = given_array
    key = data.draw(selections(x.shape))
    chosen = x[key]
    random = np.random.default_rng(3)
    thin = tuple(length if random.random() < 0.7 else 1 for length in chosen.shape)
    value = data.draw(st.sampled_from([7, random.normal(size=thin[random.integers(0, 3) :]) * 9]))
    value = np.abs(value) if x.dtype.kind == "u" else value
    with session():
        before = oc.rechunk(oc.asarray(x), tile)
        lazy = before + 0
        same = lazy
        kept = lazy * 2
        expected = x.copy()
        expected[key] = value
        lazy[key] = value
        np.testing.assert_array_equal(lazy.compute(), expected)
        assert same is lazy
        np.testing.assert_array_equal(kept.compute(), x * 2)
        lazy[key] += 1
        expected[key] += 1
        np.testing.assert_array_equal(lazy.compute(), expected)


@settings(max_examples=examples(40), deadline=None)
@given(given_array=arrays(3, nan=True), leading=st.integers(1, 3), each=st.booleans(), seed=st.integers(0, 99))
def test_assignment_to_what_a_mask_chooses(given_array: Any, leading: int, each: bool, seed: int) -> None:
    x, tile = given_array
    random = np.random.default_rng(seed)
    mask = random.random(x.shape[:leading]) < 0.5
    shape = x[mask].shape
    value = (random.random(shape if each else shape[1:]) * 9).astype(x.dtype)
    with session():
        lazy = oc.rechunk(oc.asarray(x), tile) + 0
        expected = x.copy()
        expected[mask] = value
        lazy[mask] = value
        np.testing.assert_array_equal(lazy.compute(), expected)
        chosen = lazy[oc.asarray(mask)]
        if shape[0]:
            chosen[0] = 1
            part = expected[mask]
            part[0] = 1
            np.testing.assert_array_equal(chosen.compute(), part)


def test_assignments_that_cannot_be_are_refused() -> None:
    with session():
        x = oc.zeros((3, 4))
        with pytest.raises(ShapeError, match=r"shape \(3,\) for a selection of shape \(2, 4\)"):
            x[:2] = np.ones(3)
        with pytest.raises(ShapeError, match=r"5 values for the 1 that the mask chooses"):
            x[np.asarray([True, False, False])] = np.ones((5, 4))
        with pytest.raises(OutcoreError, match=r"array of positions"):
            x[[0, 1]] = 1
        with pytest.raises(OutcoreError, match=r"out of bounds for axis 0"):
            x[3] = 1
        with pytest.raises(OutcoreError, match=r"None has no place"):
            x[None] = 1
        assert not x.compute().any()


@pytest.mark.parametrize("name", ["var", "std", "nanvar", "nanstd"])
def test_two_corrections_are_refused_under_the_name_that_was_called(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"^{name}: "):
        getattr(oc, name)(np.ones(3), correction=1, ddof=2)
