"""The Python front: every function of the namespace against NumPy, and the rules of lazy arrays."""

from __future__ import annotations

import copy
import operator

import numpy as np
import pytest

import outcore as oc
from outcore import errors

DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float32", "float64", "complex64", "complex128",
]  # fmt: skip
RNG = np.random.default_rng(0)
A = RNG.uniform(0.1, 0.9, (4, 5))
B = RNG.uniform(0.1, 0.9, (5, 3))
CUBE = RNG.normal(size=(2, 3, 4))


def same(lazy, expected, tolerance=1e-12):
    assert isinstance(lazy, oc.Array)
    value = lazy.compute()
    expected = np.asarray(expected)
    assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
    assert (value.shape, value.dtype) == (expected.shape, expected.dtype)
    if expected.dtype.kind in "fc":
        np.testing.assert_allclose(value, expected, rtol=max(tolerance, 4 * np.finfo(expected.dtype).eps), atol=1e-14)
    else:
        np.testing.assert_array_equal(value, expected)


def sample(dtype, shape=(3, 4), seed=0):
    rng = np.random.default_rng(seed)
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    kind = np.dtype(dtype).kind
    if kind in "iu":
        return rng.integers(1, 7, shape).astype(dtype)
    return (rng.normal(size=shape) + (1j * rng.normal(size=shape) if kind == "c" else 0)).astype(dtype)


UNARY = [
    "abs", "acos", "asin", "asinh", "atan", "atanh", "cbrt", "ceil", "conj", "cos", "cosh", "exp", "exp2", "expm1",
    "floor", "isfinite", "isinf", "isnan", "log", "log1p", "log2", "log10", "logical_not", "negative", "positive",
    "reciprocal", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan", "tanh", "trunc",
]  # fmt: skip
BINARY = [
    "add", "atan2", "copysign", "divide", "equal", "floor_divide", "greater", "greater_equal", "hypot", "less",
    "less_equal", "logaddexp", "logical_and", "logical_or", "logical_xor", "maximum", "minimum", "multiply",
    "nextafter", "not_equal", "pow", "remainder", "subtract",
]  # fmt: skip
BITS = ["bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"]


@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_agree_with_numpy(name):
    same(getattr(oc, name)(oc.asarray(A)), getattr(np, name)(A), 1e-13)


def test_functions_outside_the_unit_interval():
    same(oc.acosh(oc.asarray(A + 1)), np.acosh(A + 1))
    z = sample("complex128")
    same(oc.real(oc.asarray(z)), z.real)
    same(oc.imag(oc.asarray(z)), z.imag)
    same(oc.asarray(A).imag, np.zeros_like(A))


@pytest.mark.parametrize("name", BINARY)
def test_binary_functions_broadcast_and_agree_with_numpy(name):
    same(getattr(oc, name)(oc.asarray(A), oc.asarray(A[0])), getattr(np, name)(A, A[0]), 1e-13)


@pytest.mark.parametrize("name", BITS)
def test_bit_functions_agree_with_numpy(name):
    x, y = sample("int32"), sample("int32", seed=1)
    same(getattr(oc, name)(oc.asarray(x), oc.asarray(y)), getattr(np, name)(x, y))
    same(~oc.asarray(x), ~x)


@pytest.mark.parametrize("left", DTYPES)
@pytest.mark.parametrize("right", DTYPES)
def test_types_promote_as_in_numpy(left, right):
    x, y = sample(left), sample(right, seed=1)
    same(oc.asarray(x) + oc.asarray(y), x + y, 1e-6)
    assert oc.result_type(oc.asarray(x), oc.asarray(y)) == np.result_type(x, y)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scalar", [True, 2, 2.5, 1 + 2j, np.float64(2.5), np.int8(3)])
def test_python_scalars_are_weak_and_numpy_scalars_strong(dtype, scalar):
    x = sample(dtype)
    same(oc.asarray(x) * scalar, x * scalar, 1e-6)
    same(scalar + oc.asarray(x), scalar + x, 1e-6)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
@pytest.mark.parametrize("number", [300, -1, 3])
def test_comparison_with_integers_beyond_the_type(compare, number):
    x = sample("uint8")
    same(compare(oc.asarray(x), number), compare(x, number))
    same(compare(number, oc.asarray(x)), compare(number, x))


def test_integers_beyond_the_type_are_refused_in_arithmetic():
    with pytest.raises(OverflowError, match=r"300.*uint8"):
        oc.asarray(sample("uint8")) + 300


@pytest.mark.parametrize(
    "operation",
    [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow],
)
def test_operators_work_from_both_sides_and_with_numpy(operation):
    lazy = oc.asarray(A)
    same(operation(lazy, 2), operation(A, 2))
    same(operation(2, lazy), operation(2, A))
    same(operation(lazy, A), operation(A, A))
    same(operation(A, lazy), operation(A, A))


@pytest.mark.parametrize("operation", [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift])
def test_bit_operators_work_from_both_sides(operation):
    x = sample("int64")
    same(operation(oc.asarray(x), 1), operation(x, 1))
    same(operation(1, oc.asarray(x)), operation(1, x))


def test_augmented_assignment_makes_a_new_array():
    x = oc.asarray(A)
    before = x
    x += 1
    same(before, A)
    same(x, A + 1)


REDUCTIONS = ["sum", "prod", "mean", "var", "std", "min", "max", "any", "all", "count_nonzero"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (0, 1, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_agree_with_numpy(name, axis, keepdims):
    expected = getattr(np, name)(CUBE, axis=axis, keepdims=keepdims)
    if name == "count_nonzero":
        expected = np.asarray(expected).astype(np.int64)
    same(getattr(oc, name)(oc.asarray(CUBE), axis=axis, keepdims=keepdims), expected)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_positions_agree_with_numpy(name, axis):
    same(getattr(oc, name)(oc.asarray(CUBE), axis=axis), getattr(np, name)(CUBE, axis=axis))
    same(getattr(oc.asarray(CUBE), name)(axis=axis, keepdims=True), getattr(np, name)(CUBE, axis=axis, keepdims=True))


@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_and_means_have_numpys_types(dtype):
    x = sample(dtype)
    same(oc.sum(oc.asarray(x)), x.sum(), 1e-6)
    same(oc.mean(oc.asarray(x), axis=0), x.mean(axis=0), 1e-6)
    same(oc.sum(oc.asarray(x), dtype="complex128"), x.sum(dtype="complex128"), 1e-6)


def test_variance_takes_a_correction():
    same(oc.var(oc.asarray(A), axis=0, correction=1), A.var(axis=0, ddof=1))
    same(oc.asarray(A).std(correction=1), A.std(ddof=1))


def test_reductions_of_nothing():
    empty = oc.zeros((0, 3))
    same(oc.sum(empty, axis=0), np.zeros(3))
    same(oc.prod(empty), np.float64(1))
    same(oc.all(empty), np.bool_(True))
    for name in ("min", "max", "argmin", "argmax"):
        with pytest.raises(errors.ShapeError, match=name):
            getattr(oc, name)(empty, axis=0)


@pytest.mark.parametrize(
    "key",
    [
        0, -1, (1, 2), slice(1, None), slice(None, None, -1), slice(3, 0, -2), slice(5, 2), (slice(None), 1), Ellipsis,
        (Ellipsis, 0), (0, Ellipsis), None, (None, 1, None), (slice(0, 4, 3), slice(None, None, 2)), (),
        slice(-100, 100), (None, Ellipsis, None), np.int64(2),
    ],
)  # fmt: skip
def test_basic_indexing_agrees_with_numpy(key):
    same(oc.asarray(A)[key], A[key])


@pytest.mark.parametrize("key", [True, 1.0, "a", (0, 0, 0), 4, (Ellipsis, Ellipsis)])
def test_other_indexing_is_refused_as_an_index_error(key):
    with pytest.raises(IndexError) as caught:
        oc.asarray(A)[key]
    assert caught.value.code == "index"


def test_a_mask_chooses_and_one_that_does_not_fit_is_refused():
    x = oc.asarray(A)
    same(x[x > 0], A[A > 0])
    same(x[A[:, 0] > 0], A[A[:, 0] > 0])
    with pytest.raises(errors.IndexingError, match=r"\(3,\) does not choose from shape"):
        x[np.array([True, False, True])]


def test_iteration_gives_rows_and_ends():
    rows = list(oc.asarray(A))
    assert len(rows) == len(oc.asarray(A)) == 4
    same(rows[-1], A[-1])


def test_take_turns_indices_into_slices():
    for indices in ([0, 1, 2], [3, 1, 1, 0], [-1], [2, 0], []):
        same(oc.take(oc.asarray(A), indices, axis=0), np.take(A, np.asarray(indices, dtype=int), axis=0))
    with pytest.raises(errors.IndexingError, match="7 is out of bounds"):
        oc.take(oc.asarray(A), [7], axis=1)


MANIPULATIONS = {
    "T": (lambda x: x.T, lambda x: x.T),
    "mT": (lambda x: x.mT, lambda x: x.swapaxes(-1, -2)),
    "permute_dims": (lambda x: oc.permute_dims(x, (2, 0, 1)), lambda x: x.transpose(2, 0, 1)),
    "moveaxis": (lambda x: oc.moveaxis(x, 0, -1), lambda x: np.moveaxis(x, 0, -1)),
    "moveaxis two": (lambda x: oc.moveaxis(x, (0, 1), (2, 0)), lambda x: np.moveaxis(x, (0, 1), (2, 0))),
    "reshape": (lambda x: x.reshape(6, -1), lambda x: x.reshape(6, -1)),
    "reshape of a transpose": (lambda x: oc.reshape(x.T, (24,)), lambda x: x.T.reshape(24)),
    "ravel": (lambda x: x.ravel(), lambda x: x.ravel()),
    "expand_dims": (lambda x: oc.expand_dims(x, axis=(0, -1)), lambda x: np.expand_dims(x, (0, -1))),
    "squeeze": (lambda x: oc.squeeze(x[:1], 0), lambda x: x[0]),
    "flip": (lambda x: oc.flip(x, axis=1), lambda x: np.flip(x, 1)),
    "flip all": (lambda x: oc.flip(x), lambda x: np.flip(x)),
    "roll": (lambda x: oc.roll(x, 2, axis=2), lambda x: np.roll(x, 2, 2)),
    "roll back": (lambda x: oc.roll(x, (-1, 5), axis=(0, 1)), lambda x: np.roll(x, (-1, 5), (0, 1))),
    "roll flat": (lambda x: oc.roll(x, 5), lambda x: np.roll(x, 5)),
    "concat": (lambda x: oc.concat([x, x * 2], axis=1), lambda x: np.concatenate([x, x * 2], 1)),
    "concat flat": (lambda x: oc.concat([x, x[0]], axis=None), lambda x: np.concatenate([x, x[0]], None)),
    "stack": (lambda x: oc.stack([x, x], axis=-1), lambda x: np.stack([x, x], -1)),
    "repeat": (lambda x: oc.repeat(x, 3, axis=1), lambda x: np.repeat(x, 3, 1)),
    "repeat flat": (lambda x: oc.repeat(x, 2), lambda x: np.repeat(x, 2)),
    "tile": (lambda x: oc.tile(x, (2, 1, 3)), lambda x: np.tile(x, (2, 1, 3))),
    "tril": (lambda x: oc.tril(x, k=1), lambda x: np.tril(x, 1)),
    "triu": (lambda x: oc.triu(x), lambda x: np.triu(x)),
    "diff": (lambda x: oc.diff(x, axis=1, n=2), lambda x: np.diff(x, 2, 1)),
    "clip": (lambda x: oc.clip(x, -0.5, 0.5), lambda x: np.clip(x, -0.5, 0.5)),
    "where": (lambda x: oc.where(x > 0, x, 0), lambda x: np.where(x > 0, x, 0)),
    "broadcast_to": (lambda x: oc.broadcast_to(x, (5, 2, 3, 4)), lambda x: np.broadcast_to(x, (5, 2, 3, 4))),
}


@pytest.mark.parametrize("name", MANIPULATIONS)
def test_manipulations_agree_with_numpy(name):
    ours, numpys = MANIPULATIONS[name]
    same(ours(oc.asarray(CUBE)), numpys(CUBE))


def test_unstack_and_broadcast_arrays_give_several():
    for lazy, expected in zip(oc.unstack(oc.asarray(CUBE), axis=1), np.unstack(CUBE, axis=1), strict=True):
        same(lazy, expected)
    grids = zip(oc.meshgrid(oc.arange(3), oc.arange(2)), np.meshgrid(np.arange(3), np.arange(2)), strict=True)
    for lazy, expected in grids:
        same(lazy, expected)


@pytest.mark.parametrize(
    ("left", "right"),
    [((4, 5), (5, 3)), ((5,), (5, 3)), ((4, 5), (5,)), ((5,), (5,)), ((2, 4, 5), (5, 3)), ((2, 1, 4, 5), (3, 5, 2)),
     ((0, 5), (5, 3)), ((4, 0), (0, 3)), ((1, 1), (1, 1))],
)  # fmt: skip
def test_products_agree_with_numpy(left, right):
    x, y = RNG.normal(size=left), RNG.normal(size=right)
    same(oc.asarray(x) @ oc.asarray(y), x @ y)
    same(x @ oc.asarray(y), x @ y)


def test_linear_algebra_agrees_with_numpy():
    lazy = oc.asarray(CUBE)
    same(oc.tensordot(lazy, oc.asarray(CUBE), axes=([0, 2], [0, 2])), np.tensordot(CUBE, CUBE, ([0, 2], [0, 2])))
    same(oc.tensordot(lazy, oc.asarray(A), axes=1), np.tensordot(CUBE, A, 1))
    z = sample("complex128")
    same(oc.vecdot(oc.asarray(z), oc.asarray(z + 1)), np.vecdot(z, z + 1))
    same(oc.linalg.outer(oc.asarray(A[0]), oc.asarray(B[0])), np.outer(A[0], B[0]))
    same(oc.linalg.trace(oc.asarray(A), offset=1), np.trace(A, 1))
    same(oc.linalg.cross(oc.asarray(B), oc.asarray(B[::-1].copy())), np.cross(B, B[::-1]))
    same(oc.linalg.matrix_power(oc.asarray(A[:, :4].copy()), 5), np.linalg.matrix_power(A[:, :4], 5))
    for order in (0, 1, 2, 3, np.inf, -np.inf):
        same(oc.linalg.vector_norm(lazy, axis=1, ord=order), np.linalg.vector_norm(CUBE, axis=1, ord=order))
    for order in ("fro", 1, -1, np.inf):
        same(oc.linalg.matrix_norm(lazy, ord=order), np.linalg.matrix_norm(CUBE, ord=order))


CREATION = {
    "zeros": (lambda n: n.zeros((2, 3))),
    "ones": (lambda n: n.ones(3, dtype="int16")),
    "full": (lambda n: n.full((2,), 7)),
    "full complex": (lambda n: n.full((2, 2), 1j)),
    "arange": (lambda n: n.arange(10)),
    "arange down": (lambda n: n.arange(5, -3, -2)),
    "arange real": (lambda n: n.arange(0.0, 1.0, 0.3)),
    "arange typed": (lambda n: n.arange(4, dtype="float32")),
    "linspace": (lambda n: n.linspace(0, 1, 7)),
    "linspace open": (lambda n: n.linspace(0, 1, 7, endpoint=False)),
    "linspace one": (lambda n: n.linspace(2, 5, 1)),
    "eye": (lambda n: n.eye(3, 4, k=1)),
    "0-d": (lambda n: n.ones(())),
    "empty axis": (lambda n: n.zeros((0, 2))),
}


@pytest.mark.parametrize("name", CREATION)
def test_creation_agrees_with_numpy(name):
    same(CREATION[name](oc), CREATION[name](np))


def test_creation_like_another_array():
    x = oc.asarray(sample("float32"))
    same(oc.ones_like(x), np.ones((3, 4), "float32"))
    same(oc.full_like(x, 3, dtype="int8"), np.full((3, 4), 3, "int8"))


def test_numpy_arrays_of_any_layout_are_taken():
    for view in (A.T, A[::2, ::-1], np.asfortranarray(A), np.broadcast_to(A[0], (3, 5)), A.astype(">f8")):
        same(oc.asarray(view), np.ascontiguousarray(view).astype("f8"))


def test_random_values_depend_on_the_seed_only():
    for make in (oc.random.uniform, oc.random.normal, lambda shape, seed: oc.random.integers(shape, 0, 9, seed=seed)):
        first, again, other = (make((50, 4), seed=seed).compute() for seed in (1, 1, 2))
        np.testing.assert_array_equal(first, again)
        assert (first != other).any()
    values = oc.random.integers((1000,), -2, 3, seed=0).compute()
    assert set(values) == {-2, -1, 0, 1, 2}


def test_numpy_functions_build_nodes():
    x = oc.asarray(A)
    for lazy, expected in (
        (np.exp(x), np.exp(A)),
        (np.arctan2(A, x), np.arctan2(A, A)),
        (np.sum(x, axis=0), A.sum(axis=0)),
        (np.add.reduce(x, axis=1), A.sum(axis=1)),
        (np.var(x, axis=0, ddof=1), A.var(axis=0, ddof=1)),
        (np.matmul(A.T.copy(), x), A.T @ A),
        (np.dot(x, B), A @ B),
        (np.concatenate([A, x]), np.concatenate([A, A])),
        (np.where(x > 0.5, x, 0.0), np.where(A > 0.5, A, 0.0)),
        (np.linalg.norm(x), np.linalg.norm(A)),
        (np.clip(x, 0.2, 0.3), np.clip(A, 0.2, 0.3)),
        (np.transpose(x), A.T),
    ):
        same(lazy, expected)


def test_numpy_functions_without_a_node_do_not_compute_silently():
    with pytest.raises(TypeError):
        np.polyfit(oc.asarray(A), oc.asarray(A), 1)
    with pytest.raises(TypeError):
        np.add.reduceat(oc.asarray(A), [0, 2])
    with pytest.raises(TypeError, match="immutable"):
        np.add(A, 1, out=oc.asarray(A))


def test_conversion_to_numpy_and_to_scalars():
    np.testing.assert_array_equal(np.asarray(oc.asarray(A)), A)
    assert np.array(oc.asarray(A), dtype="float32").dtype == np.float32
    with pytest.raises(ValueError, match="no NumPy array to share"):
        np.asarray(oc.asarray(A), copy=False)
    assert float(oc.sum(oc.asarray(A))) == pytest.approx(A.sum())
    assert (int(oc.asarray(3)), bool(oc.asarray(0.0)), complex(oc.asarray(1j))) == (3, False, 1j)
    assert [10, 20, 30][oc.asarray(1)] == 20
    with pytest.raises(ValueError, match="ambiguous"):
        bool(oc.asarray(A))


def test_compute_gives_one_array_or_a_tuple():
    x = oc.asarray(A)
    one, (two, three) = oc.compute(x), oc.compute(x + 1, oc.sum(x))
    assert type(one) is np.ndarray
    assert three.shape == ()
    np.testing.assert_array_equal(two, A + 1)
    assert oc.compute() == ()
    same(oc.persist(x * 2), A * 2)


def test_store_and_open_and_explain(tmp_path):
    x = oc.asarray(A)
    targets = {tmp_path / "x.npy": x, tmp_path / "y.zarr": x.T @ x}
    forecast = oc.explain(targets)
    outcome = oc.store(targets)
    assert (outcome.bytes_read, outcome.bytes_written) == (forecast.bytes_read, forecast.bytes_written)
    assert outcome.peak_bytes == forecast.peak_bytes
    same(oc.open(tmp_path / "x.npy"), A)
    same(oc.open(str(tmp_path / "y.zarr")), A.T @ A)
    with pytest.raises(FileExistsError):
        oc.store(targets)
    with pytest.raises(errors.ShapeError, match="chunks"):
        oc.store({tmp_path / "z.zarr": x}, chunks={tmp_path / "z.zarr": (1,)})


def test_an_explanation_reads_as_a_table():
    explanation = oc.explain(oc.sum(oc.asarray(A), axis=0))
    text = str(explanation)
    assert "bytes read (exact)" in text
    assert "peak reserved" in text
    assert "memory limit" in text
    assert "<table>" in explanation._repr_html_()
    assert explanation.to_dict()["passes"]


def test_a_picture_is_dot_and_svg(tmp_path):
    x = oc.asarray(A)
    picture = oc.visualize(x.T @ x, filename=tmp_path / "plan.svg")
    assert picture.dot.startswith("digraph")
    assert (tmp_path / "plan.svg").read_text().startswith("<svg")
    with pytest.raises(errors.ShapeError, match=r"plan.pdf ends in none of .svg, .html, .png, .dot"):
        oc.visualize(x, filename="plan.pdf")


def test_a_profile_counts_runs_and_writes_a_timeline(tmp_path):
    import json

    with oc.profile(tmp_path / "trace.json") as profile:
        oc.asarray(A).sum().compute()
        oc.asarray(A).mean().compute()
    assert len(profile.outcomes) == 2
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["pid"] for event in events} == {1, 2}


def test_map_blocks_runs_a_function_on_tiles():
    def wave(x, y):
        return np.sin(x) + y

    same(oc.map_blocks(wave, oc.asarray(A), oc.asarray(A[0])), np.sin(A) + A[0])
    assert oc.map_blocks(lambda x: x > 0, oc.asarray(A)).dtype == bool


def test_map_traces_a_function_into_nodes():
    same(oc.map(lambda x, y: np.exp(x) * y + 1, oc.asarray(A), 2.0), np.exp(A) * 2 + 1)
    with pytest.raises(errors.DTypeError, match="where"):
        oc.map(lambda x: x if x.sum() > 0 else -x, oc.asarray(A))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda x: x @ x, r"matmul: \(4, 5\) @ \(4, 5\): inner dimensions 5 and 4 differ"),
        (lambda x: x + oc.zeros(3), r"4, ?5.*3"),
        (lambda x: oc.concat([x, oc.zeros((4, 6))]), r"\(4, 5\) and \(4, 6\)"),
        (lambda x: oc.stack([x, x[1:]]), r"\(4, 5\) and \(3, 5\)"),
        (lambda x: x.reshape(3, 7), r"\(4, 5\).*\(3, 7\)"),
        (lambda x: oc.squeeze(x, 0), r"length 4"),
        (lambda x: oc.sum(x, axis=2), r"axis 2 is out of bounds"),
        (lambda x: oc.sum(x, axis=(0, -2)), r"same axis twice"),
        (lambda x: oc.permute_dims(x, (0, 0)), r"\(0, 0\)"),
    ],
)
def test_shape_errors_name_both_sides(make, words):
    with pytest.raises(errors.ShapeError, match=words):
        make(oc.asarray(A))


@pytest.mark.parametrize("bad", ["object", "datetime64[s]", "U3", "no such type"])
def test_types_without_kernels_are_refused(bad):
    with pytest.raises(errors.DTypeError):
        oc.zeros(3, dtype=bad)


def test_operators_with_strangers_raise_type_errors():
    with pytest.raises(TypeError):
        oc.asarray(A) + "text"
    with pytest.raises(TypeError):
        hash(oc.asarray(A))


def test_what_an_array_says_of_itself():
    x = oc.asarray(A)
    assert (x.shape, x.ndim, x.size, x.nbytes, x.dtype) == ((4, 5), 2, 20, 160, np.float64)
    assert repr(x).startswith("outcore.Array(shape=(4, 5), dtype=float64")
    assert "<table" in x._repr_html_()
    assert x.__array_namespace__() is oc
    assert x.to_device(x.device) is x


def test_the_namespace_exports_what_it_lists():
    for name in oc.__all__:
        assert hasattr(oc, name), name
    info = oc.__array_namespace_info__()
    assert info.dtypes(kind="bool") == {"bool": np.dtype(bool)}
    assert info.default_dtypes()["integral"] == np.int64
    assert copy.copy(oc.pi) == np.pi


def test_equal_expressions_are_one_node():
    x = oc.asarray(A)
    assert (x * 2 + 1)._expr.id == (x * 2 + 1)._expr.id
