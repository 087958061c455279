"""Every public name in a typed call, for mypy and pyright: `test_typing.py` has them read this; nothing runs it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import outcore as oc
from outcore import Array, asarray
from outcore.graph import bfs
from outcore.linalg import svd
from outcore.sparse import from_coo
from outcore.sparse.linalg import cg

Values = npt.NDArray[Any]


def names_that_are_imported_alone() -> None:
    assert_type(asarray(1), Array)
    assert all(map(callable, (bfs, svd, from_coo, cg)))


def types(x: oc.Array) -> None:
    assert_type(oc.astype(x, oc.float32), oc.Array)
    assert_type([oc.can_cast("int8", oc.int16), oc.isdtype(x.dtype, "integral")], list[bool])
    assert_type(oc.finfo(oc.float64).bits, Any)
    assert_type(oc.iinfo("int32"), np.iinfo[Any])
    assert_type(oc.result_type(x, 1.0, oc.int8), np.dtype[Any])
    kinds: list[npt.DTypeLike] = [oc.bool, oc.int8, oc.int16, oc.int32, oc.int64, oc.uint8, oc.uint16, oc.uint32]
    kinds += [oc.uint64, oc.float16, oc.float32, oc.float64, oc.complex64, oc.complex128]
    assert_type([oc.e, oc.inf, oc.nan, oc.pi, oc.constants.pi], list[float])
    assert_type(x[oc.newaxis, ..., 0, 1:5:2], oc.Array)
    assert_type([oc.__version__, oc.__array_api_version__], list[str])
    assert_type(oc.__array_namespace_info__().default_device(), str)


def elementwise(x: oc.Array, y: oc.Array) -> None:
    assert_type([oc.abs(x), oc.acos(x), oc.acosh(x), oc.asin(x), oc.asinh(x), oc.atan(x), oc.atanh(x)], list[oc.Array])
    assert_type([oc.cbrt(x), oc.ceil(x), oc.cos(x), oc.cosh(x), oc.exp(x), oc.exp2(x), oc.expm1(x)], list[oc.Array])
    assert_type([oc.floor(x), oc.i0(x), oc.isfinite(x), oc.isinf(x), oc.isnan(x), oc.log(x)], list[oc.Array])
    assert_type([oc.log10(x), oc.log1p(x), oc.log2(x), oc.nan_to_num(x, nan=1.0), oc.negative(x)], list[oc.Array])
    assert_type([oc.positive(x), oc.reciprocal(x), oc.round(x), oc.sign(x), oc.signbit(x), oc.sin(x)], list[oc.Array])
    assert_type([oc.sinh(x), oc.sqrt(x), oc.square(x), oc.tan(x), oc.tanh(x), oc.trunc(x)], list[oc.Array])
    assert_type([oc.conj(x), oc.real(x), oc.imag(x), oc.bitwise_invert(x), oc.logical_not(x)], list[oc.Array])
    assert_type([oc.add(x, 1), oc.atan2(x, y), oc.copysign(1.0, y), oc.divide(x, y)], list[oc.Array])
    assert_type([oc.equal(x, np.ones(3)), oc.not_equal(x, np.float32(1)), oc.less(x, y)], list[oc.Array])
    assert_type([oc.greater(x, y), oc.greater_equal(x, y), oc.less_equal(x, y)], list[oc.Array])
    assert_type([oc.floor_divide(x, y), oc.hypot(x, y), oc.logaddexp(x, y), oc.maximum(x, y)], list[oc.Array])
    assert_type([oc.minimum(x, y), oc.multiply(x, 2j), oc.nextafter(x, y), oc.pow(x, 2)], list[oc.Array])
    assert_type([oc.remainder(x, y), oc.subtract(x, y)], list[oc.Array])
    assert_type([oc.bitwise_and(x, y), oc.bitwise_or(x, y), oc.bitwise_xor(x, y)], list[oc.Array])
    assert_type([oc.bitwise_left_shift(x, 1), oc.bitwise_right_shift(x, 1)], list[oc.Array])
    assert_type([oc.logical_and(x, y), oc.logical_or(x, y), oc.logical_xor(x, True)], list[oc.Array])
    assert_type([oc.clip(x, 0, 1), oc.clip(x, max=y), oc.where(x > 0, x, 0.0)], list[oc.Array])
    assert_type(oc.where(x), tuple[oc.Array, ...])
    assert_type([oc.select([x > 0], [x], default=0.0), oc.choose(x, [y, 1]), oc.digitize(x, y)], list[oc.Array])
    assert_type([oc.piecewise(x, [x < 0], [abs, 1.0]), oc.interp(x, y, y, left=0.0)], list[oc.Array])
    assert_type([oc.allclose(x, y), oc.array_equal(x, y), oc.array_equiv(x, y), oc.isclose(x, y)], list[oc.Array])
    assert_type(oc.elementwise.exp(x), oc.Array)


def half(x: oc.Array, *, by: float = 2.0) -> oc.Array:
    return x / by


def of_tile(tile: Values) -> Values:
    return np.asarray(np.sort(tile, axis=0))


def functions_of_ones_own(x: oc.Array) -> None:
    assert_type(oc.map(half, x, by=4.0), oc.Array)
    assert_type(oc.map_blocks(of_tile, x, dtype="float64", workspace="8MiB", whole=0), oc.Array)
    assert_type(oc.map_overlap(of_tile, x, depth=1, boundary="reflect"), oc.Array)
    assert_type(oc.block_reduce(x, (4, 4), oc.mean), oc.Array)
    assert_type(oc.vectorize(lambda number: number + 1)(x), oc.Array)
    assert_type(oc.apply_along_axis(np.median, 0, x), oc.Array)
    assert_type(oc.apply_over_axes(oc.sum, x, [0, 1]), oc.Array)
    assert_type(oc.fromfunction(lambda i, j: i - j, (3, 4)), oc.Array)


def creation(x: oc.Array) -> None:
    assert_type([oc.arange(5), oc.arange(0, 1, 0.1, dtype=oc.float32), oc.eye(3, 4, k=1)], list[oc.Array])
    assert_type([oc.asarray([[1, 2]]), oc.asarray(np.ones(3)), oc.from_dlpack(np.ones(3))], list[oc.Array])
    assert_type([oc.empty((2, 3)), oc.ones(4), oc.zeros([2, 3]), oc.full((2,), 1.5)], list[oc.Array])
    assert_type([oc.empty_like(x), oc.ones_like(x), oc.zeros_like(x), oc.full_like(x, 1)], list[oc.Array])
    assert_type([oc.geomspace(1, 10), oc.linspace(0, 1, 5, endpoint=False), oc.logspace(0, 1)], list[oc.Array])
    assert_type([oc.meshgrid(x, x, indexing="ij"), oc.diag_indices_from(x), oc.ix_(x, x)], list[tuple[oc.Array, ...]])
    assert_type([oc.tril_indices_from(x, k=1), oc.triu_indices_from(x)], list[tuple[oc.Array, ...]])
    assert_type(
        [
            oc.random.integers((3,), 0, 9, seed=1),
            oc.random.normal((3, 4)),
            oc.random.uniform(3),
            oc.random.choice(9, 2),
        ],
        list[oc.Array],
    )


def reductions(x: oc.Array) -> None:
    assert_type([oc.all(x), oc.any(x, axis=0), oc.argmax(x, axis=1), oc.argmin(x), oc.count_nonzero(x)], list[oc.Array])
    assert_type([oc.max(x, axis=(0, 1)), oc.min(x), oc.mean(x, keepdims=True), oc.ptp(x)], list[oc.Array])
    assert_type([oc.prod(x, dtype="float64"), oc.sum(x, axis=-1), oc.std(x, correction=1), oc.var(x)], list[oc.Array])
    assert_type([oc.cummax(x), oc.cummin(x, axis=0), oc.cumulative_prod(x), oc.cumulative_sum(x)], list[oc.Array])
    assert_type([oc.cumsum(x), oc.cumprod(x, axis=0)], list[oc.Array])
    assert_type([oc.nanargmax(x), oc.nanargmin(x), oc.nancumprod(x), oc.nancumsum(x), oc.nanmax(x)], list[oc.Array])
    assert_type([oc.nanmean(x), oc.nanmedian(x), oc.nanmin(x), oc.nanpercentile(x, 5)], list[oc.Array])
    assert_type([oc.nanprod(x), oc.nanquantile(x, [0.5]), oc.nanstd(x), oc.nansum(x), oc.nanvar(x)], list[oc.Array])
    assert_type([oc.median(x), oc.percentile(x, 5), oc.quantile(x, [0.1, 0.9], method="lower")], list[oc.Array])
    assert_type([oc.average(x, weights=x), oc.corrcoef(x), oc.cov(x, ddof=0), oc.trapezoid(x, dx=0.1)], list[oc.Array])
    assert_type([oc.bincount(x, minlength=3), oc.histogram_bin_edges(x, 5), oc.mode(x)], list[oc.Array])
    counted = oc.histogram(x, 20, range=(0.0, 1.0), density=True)
    assert_type(counted, oc.Histogram)
    assert_type([counted.counts, counted.edges], list[oc.Array])
    assert_type(oc.histogram2d(x, x, 5).x_edges, oc.Array)
    assert_type(oc.histogramdd(x, 5).edges, tuple[oc.Array, ...])
    sparse = oc.sparse.open("a.ocs")
    assert_type([sparse @ x, x @ sparse, sparse.T @ x, sparse.sum(axis=0)], list[oc.Array])
    assert_type(oc.sparse.hits(sparse), tuple[oc.Array, oc.Array])
    assert_type(oc.sparse.explain_spgemm(sparse, sparse, mask=sparse), oc.Explanation)
    assert_type(oc.sparse.from_binsparse("a.h5", "b.ocs"), oc.sparse.SparseMatrix)
    when = oc.dates.view(x, "datetime64[s]")
    assert_type(when, oc.Dates)
    assert_type(oc.Text(x, "S8").codes, oc.Array)
    assert_type([oc.groupby(when), oc.groupby(oc.Text(x, "S8"))], list[oc.GroupBy])
    oc.store({"when.npy": when, "x.npy": x})
    assert_type([when.integers, when.argmax(), when.argsort(), when.isin(when)], list[oc.Array])
    assert_type([when.min(), when.max(axis=0), when.sort(), when.unique(), when[1:], when.diff()], list[oc.Dates])
    groups = oc.groupby(x, groups=5)
    assert_type(groups, oc.GroupBy)
    assert_type([groups.keys, groups.count(), groups.sum(x), groups.prod(x), groups.min(x)], list[oc.Array])
    assert_type([groups.max(x), groups.mean(x), groups.var(x), groups.std(x)], list[oc.Array])
    assert_type([groups.median(x), groups.first(x), groups.last(x), groups.argmin(x), groups.argmax(x)], list[oc.Array])
    assert_type([groups.cumsum(x), groups.cumprod(x), groups.cummin(x), groups.cummax(x)], list[oc.Array])
    assert_type([groups.cumcount(), groups.rank(x, method="dense"), groups.transform(x, "mean")], list[oc.Array])
    assert_type(groups.aggregate(x, ["min", "max"]), tuple[oc.Array, ...])
    assert_type([groups.agg(x, "mean"), groups.mean(x, skipna=True)], list[oc.Array])
    assert_type(groups.agg(x, ["min", "max"]), tuple[oc.Array, ...])
    assert_type([groups.agg(x, {"low": "min"}), groups.agg(x, high="max")], list[dict[str, oc.Array]])
    assert_type(oc.groupby((x, x)), oc.GroupBy)


def tables(x: oc.Array, source: oc.Table) -> None:
    t = oc.table({"x": x}, name=["a", "b"], city=oc.Categorical(x, ["oslo"]))
    assert_type(t, oc.Table)
    assert_type([t.columns, list(t.dtypes)], list[list[str]])
    assert_type([t["x"], oc.Categorical(x, ["oslo"]).codes], list[oc.Array])
    assert_type([t[["x"]], t[t["x"] > 1], t[1:3], t.select("x"), t.head(), t.sample(3, seed=1)], list[oc.Table])
    assert_type([t.filter(t["x"] > 1), t.sort_by("x", descending=True), t.concat(source)], list[oc.Table])
    assert_type([t.with_columns(y=x), t.rename({"x": "y"}), t.value_counts("x")], list[oc.Table])
    assert_type([t.join(source, "x", how="left"), t.join(source, {"x": "y"}, how="semi")], list[oc.Table])
    assert_type(t.groupby("x", "name").agg(total=("x", "sum")), oc.Table)
    assert_type(t.describe()["x"]["mean"], float)
    assert_type(t.compute()["x"], Values)
    assert_type(
        [oc.read_parquet("a-*.parquet", nulls="mask"), oc.read_csv("a.csv", folder="a"), oc.read_arrow("a.arrow")],
        list[oc.Table],
    )
    assert_type([oc.from_arrow(t, path="b"), oc.open_table("b")], list[oc.Table])
    oc.to_parquet(t, "a.parquet", compression="none", overwrite=True)


def graphs() -> None:
    stored = oc.graph.open("a.ocg")
    assert_type(stored, oc.graph.Graph)
    assert_type(stored.neighbors(0), npt.NDArray[np.int64])
    assert_type(oc.graph.bfs(stored, [0, 1], direction="both"), npt.NDArray[np.int32])
    assert_type(oc.graph.shortest_paths(stored, 0, step=0.5), npt.NDArray[np.float64])
    assert_type(oc.graph.connected_components(stored), npt.NDArray[np.uint32])
    assert_type(oc.graph.scan_statistics(stored), tuple[int, int])
    assert_type(oc.io.cached("a.bin", memory="1MiB"), oc.io.CachedFile)
    assert_type(oc.graph.from_sparse(oc.graph.to_sparse(stored, "a.ocs"), "b.ocg"), oc.graph.Graph)


def statistics(x: oc.Array) -> None:
    assert_type([oc.stats.gmean(x), oc.stats.hmean(x), oc.stats.iqr(x), oc.stats.kurtosis(x)], list[oc.Array])
    assert_type([oc.stats.moment(x, 3), oc.stats.sem(x), oc.stats.skew(x), oc.stats.variation(x)], list[oc.Array])
    assert_type([oc.stats.zscore(x), oc.stats.corrcoef(x), oc.stats.cov(x)], list[oc.Array])
    assert_type(oc.stats.describe(x), oc.stats.Description)
    assert_type(oc.stats.summary(x), oc.stats.Summary)


def arranging(x: oc.Array, y: oc.Array) -> None:
    assert_type([oc.atleast_1d(x), oc.atleast_2d(x), oc.atleast_3d(1.0), oc.append(x, y)], list[oc.Array])
    assert_type([oc.column_stack([x, y]), oc.concat((x, y), axis=None), oc.dstack([x, y])], list[oc.Array])
    assert_type([oc.hstack([x, y]), oc.stack([x, y], axis=1), oc.vstack([x, y])], list[oc.Array])
    assert_type([oc.array_split(x, 3), oc.split(x, [2, 4], axis=1)], list[list[oc.Array]])
    assert_type([oc.broadcast_arrays(x, 1), oc.unstack(x, axis=1)], list[tuple[oc.Array, ...]])
    assert_type(oc.broadcast_shapes((3, 1), 4), tuple[int, ...])
    assert_type([oc.broadcast_to(x, (3, 4)), oc.delete(x, [1, 2]), oc.insert(x, 1, 0.0)], list[oc.Array])
    assert_type([oc.diff(x, n=2), oc.ediff1d(x), oc.expand_dims(x, axis=0), oc.flip(x)], list[oc.Array])
    assert_type([oc.fliplr(x), oc.flipud(x), oc.gradient(x, axis=0), oc.kron(x, y)], list[oc.Array])
    assert_type(oc.gradient(x, 0.5), oc.Array | list[oc.Array])
    assert_type([oc.matrix_transpose(x), oc.moveaxis(x, 0, 1), oc.packbits(x, bitorder="little")], list[oc.Array])
    assert_type([oc.pad(x, 1, "reflect"), oc.permute_dims(x, (1, 0)), oc.rechunk(x, (3, 4))], list[oc.Array])
    assert_type([oc.repeat(x, 2, axis=0), oc.reshape(x, (-1,)), oc.resize(x, (3, 3)), oc.roll(x, 1)], list[oc.Array])
    assert_type(
        [oc.rot90(x), oc.squeeze(x, 0), oc.swapaxes(x, 0, 1), oc.tile(x, (2, 1)), oc.transpose(x)], list[oc.Array]
    )
    assert_type([oc.tril(x, k=1), oc.triu(x), oc.trim_zeros(x), oc.unpackbits(x, count=5)], list[oc.Array])
    assert_type(oc.ravel_multi_index([x, y], (3, 4)), oc.Array)
    assert_type(oc.unravel_index(x, (3, 4)), tuple[oc.Array, ...])


def order(x: oc.Array, index: oc.Array) -> None:
    assert_type([oc.argpartition(x, 3), oc.argsort(x, descending=True), oc.argwhere(x), oc.sort(x)], list[oc.Array])
    assert_type([oc.compress(x > 0, x, axis=0), oc.isin(x, index), oc.lexsort([x, index])], list[oc.Array])
    assert_type([oc.partition(x, 3), oc.permute(x, index), oc.permute_inverse(x, index)], list[oc.Array])
    assert_type([oc.searchsorted(x, 1.5, side="right"), oc.setxor1d(x, index), oc.sort_complex(x)], list[oc.Array])
    assert_type([oc.take(x, [1, 2], axis=0), oc.take_along_axis(x, index), oc.unwrap(x)], list[oc.Array])
    assert_type([oc.unique(x), oc.unique_values(x)], list[oc.Array])
    assert_type([oc.nonzero(x), oc.sort_by(x, index, descending=True)], list[tuple[oc.Array, ...]])
    assert_type([oc.unique_all(x).inverse_indices, oc.unique_counts(x).counts], list[oc.Array])
    assert_type(oc.unique_inverse(x).inverse_indices, oc.Array)
    assert_type([oc.categories(x).codes, x.categories().codes], list[oc.Array])
    assert_type(oc.top_k(x, 5, largest=False), oc.TopK)
    assert_type(oc.top_k(x, 5).values, oc.Array)


def windows(x: oc.Array) -> None:
    assert_type([oc.rolling_max(x, 3), oc.rolling_mean(x, 3, axis=0), oc.rolling_min(x, 3)], list[oc.Array])
    assert_type([oc.rolling_std(x, 3, correction=1), oc.rolling_sum(x, 3), oc.rolling_var(x, 3)], list[oc.Array])
    assert_type(oc.pyramid(x, 3), oc.Group)
    assert_type(oc.pyramid(x, 3, "ome.zarr", method="max", overwrite=True), oc.Outcome)
    assert_type([oc.convolve(x, np.ones(3), mode="same"), oc.correlate(x, x)], list[oc.Array])


def doubled(x: oc.Array) -> oc.Array:
    for i in range(len(x)):
        x[i] = 2 * x[i]
    return x


def products(x: oc.Array, y: oc.Array) -> None:
    assert_type([oc.aggregate(x, "logaddexp", axis=0), oc.aggregate(x, min, identity=0)], list[oc.Array])
    assert_type(oc.jit(abs), Any)
    assert_type(oc.loops(doubled)(x), oc.Array)
    assert_type([oc.einsum("ij,jk->ik", x, y), oc.inner(x, y, "add", "min"), oc.matmul(x, y)], list[oc.Array])
    assert_type([oc.inner(x, y, lambda a, b: (a - b) ** 2), oc.vecdot(x, y)], list[oc.Array])
    assert_type(oc.tensordot(x, y, axes=((0,), (1,))), oc.Array)
    assert_type([oc.linalg.matmul(x, y), oc.linalg.tensordot(x, y, axes=1), oc.linalg.vecdot(x, y)], list[oc.Array])
    assert_type([oc.linalg.outer(x, y), oc.linalg.cross(x, y), oc.linalg.matrix_power(x, 3)], list[oc.Array])


def factorizations(x: oc.Array, y: oc.Array) -> None:
    assert_type([oc.linalg.cholesky(x, upper=True), oc.linalg.cond(x), oc.linalg.det(x)], list[oc.Array])
    assert_type([oc.linalg.diagonal(x, offset=1), oc.linalg.eigvals(x), oc.linalg.eigvalsh(x)], list[oc.Array])
    assert_type([oc.linalg.inv(x), oc.linalg.pinv(x, rtol=1e-9), oc.linalg.solve(x, y)], list[oc.Array])
    assert_type([oc.linalg.matrix_norm(x, ord="nuc"), oc.linalg.matrix_rank(x), oc.linalg.svdvals(x)], list[oc.Array])
    assert_type([oc.linalg.trace(x), oc.linalg.vector_norm(x, ord=1), oc.linalg.matrix_transpose(x)], list[oc.Array])
    assert_type([oc.linalg.eig(x), oc.linalg.eigh(x, UPLO="U")], list[oc.linalg.EigResult])
    assert_type(oc.linalg.eigh(x, b=y, subset_by_index=(0, 2)), oc.linalg.EigResult)
    assert_type(oc.linalg.solve_triangular(x, y, trans="T", lower=True, unit_diagonal=True), oc.Array)
    assert_type(oc.linalg.lstsq(x, y), oc.linalg.LstsqResult)
    assert_type(oc.linalg.slogdet(x), oc.linalg.SlogdetResult)
    assert_type(oc.linalg.qr(x), oc.linalg.QRResult)
    assert_type(oc.linalg.qr(x, mode="r"), oc.Array)
    assert_type(oc.linalg.svd(x, full_matrices=False), oc.linalg.SVDResult)
    assert_type(oc.linalg.svd(x, compute_uv=False), oc.Array)
    factor = oc.linalg.cho_factor(x, path="x.ocf", overwrite=True)
    assert_type(factor, oc.linalg.CholeskyFactor)
    assert_type(factor.logdet(), float)
    _ = oc.linalg.cho_solve(factor, y)
    lu = oc.linalg.lu_factor(x, path="y.ocf", overwrite=True)
    assert_type(lu, oc.linalg.LUFactor)
    ldl = oc.linalg.ldl_factor(x, path="y.ocf", overwrite=True)
    assert_type(ldl, oc.linalg.LDLFactor)
    opened = oc.linalg.open_factor("y.ocf", x)
    assert_type(opened, oc.linalg.CholeskyFactor | oc.linalg.LDLFactor | oc.linalg.LUFactor | oc.linalg.QRFactor)
    qr = oc.linalg.qr_factor(x, path="z.ocf", overwrite=True)
    assert_type(qr, oc.linalg.QRFactor)
    assert_type([qr.Q, qr.R, qr.q_multiply(x, adjoint=True)], list[oc.Array])
    _ = qr.solve(y)
    assert_type(lu.growth, float)
    assert_type(lu.residual, float | None)
    _ = oc.linalg.lu_solve(lu, y, trans=1), lu.solve(y, 2), lu.slogdet(), lu.pivots


def fourier(x: oc.Array) -> None:
    assert_type([oc.fft.fft(x, n=8), oc.fft.ifft(x, norm="ortho"), oc.fft.rfft(x), oc.fft.irfft(x)], list[oc.Array])
    assert_type([oc.fft.hfft(x), oc.fft.ihfft(x), oc.fft.fftn(x, s=(4, 4)), oc.fft.ifftn(x)], list[oc.Array])
    assert_type([oc.fft.rfftn(x, axes=(0, 1)), oc.fft.irfftn(x), oc.fft.fftshift(x)], list[oc.Array])
    assert_type([oc.fft.ifftshift(x, axes=0), oc.fft.fftfreq(8, d=0.1), oc.fft.rfftfreq(8)], list[oc.Array])


def step(x: oc.Array) -> tuple[oc.Array, dict[str, oc.Array]]:
    return x / 2, {"sum": x.sum()}


def running(x: oc.Array, y: oc.Array, several: list[oc.Array]) -> None:
    assert_type(oc.open("x.npy", field="time", view="int64"), oc.Array)
    assert_type(oc.compute(x), Values)
    assert_type(oc.compute(x, y), tuple[Values, Values])
    assert_type(oc.compute(x, y, 1), tuple[Values, Values, Values])
    assert_type(oc.compute(*several), Any)
    assert_type(oc.persist(x, directory="kept"), oc.Array)
    assert_type(oc.persist(x, y), tuple[oc.Array, oc.Array])
    outcome = oc.store({"x.npy": x, "y.zarr": y}, overwrite=True, chunks={"y.zarr": (3, 4)}, resume=True)
    assert_type(outcome, oc.Outcome)
    assert_type(oc.append("y.zarr", x, axis="time"), oc.Outcome)
    assert_type(oc.store({oc.region("y.zarr", np.s_[1:3]): x}), oc.Outcome)
    told = oc.explain({"x.npy": x})
    assert_type(told, oc.Explanation)
    assert_type([told.bytes_read, outcome.bytes_read, told.peak_bytes, outcome.peak_bytes], list[int])
    assert_type(oc.visualize(x, filename="x.svg"), oc.Picture)
    with oc.profile("run.json") as recorded:
        assert_type(recorded, oc.Profile)
    with oc.Session(memory_limit="2GiB") as session, oc.config.set(threads=2):
        assert_type(session, oc.Session)
    loop = oc.iterate(step, x, until=lambda x: x.sum() < 1, max_iter=9)
    assert_type([loop.iterations, len(loop.outcomes)], list[int])
    oc.clear()


def refused(x: oc.Array) -> int | None:
    try:
        x.compute()
    except oc.errors.MemoryLimitError as error:
        return error.smallest
    return None


def methods(array: oc.Array, key: Values) -> None:
    assert_type([array.shape, array.tile], list[tuple[int, ...]])
    assert_type(array.chunks[0], tuple[int, ...])
    assert_type([array.ndim, array.size, array.nbytes, len(array), int(array)], list[int])
    assert_type(array.dtype, np.dtype[Any])
    assert_type(array.device, str)
    assert_type([array.dims, array.annotate(dims=("x",), attrs={}, name="x").dims], list[tuple[str | None, ...]])
    assert_type([array.name, array.attrs["units"]], list[Any])
    assert_type([oc.group({"x": array}), oc.Group("", {}, {})], list[oc.Group])
    assert_type([array.T, array.mT, array.real, array.imag, array.persist(), array.copy()], list[oc.Array])
    assert_type(array.compute(), Values)
    assert_type(array.to_numpy(), Values)
    assert_type([array.item(), array.tolist()], list[Any])
    assert_type([array.astype("float32"), array.reshape(3, 4), array.reshape((3, 4)), array.ravel()], list[oc.Array])
    assert_type([array.transpose(), array.transpose(1, 0), array.squeeze(), array.flatten()], list[oc.Array])
    assert_type([array.clip(0, 1), array.round(2), array.conj(), array.dot(array)], list[oc.Array])
    assert_type([array.sum(0), array.prod(), array.mean(axis=1), array.var(ddof=1), array.std()], list[oc.Array])
    assert_type([array.min(), array.max(0), array.any(), array.all(), array.ptp()], list[oc.Array])
    assert_type(array.categories().codes, oc.Array)
    assert_type([array.argmin(), array.argmax(0), array.argsort(), array.cumsum(), array.cumprod(0)], list[oc.Array])
    assert_type([array.take(key), array.repeat(2), array.swapaxes(0, 1), array.to_device("cpu")], list[oc.Array])
    assert_type(array.nonzero(), tuple[oc.Array, ...])
    assert_type([array[0], array[key], array[array > 0], array[1:, ..., None]], list[oc.Array])
    assert_type([array[[0, 2]], array[:, [0, 2]], array[key, 1], array[np.int64(1)]], list[oc.Array])
    array[array > 0] = 1.0
    array[2:5] = key
    assert_type([+array, -array, ~array, abs(array), 1 + array, array - key, 2 * array, array / 2], list[oc.Array])
    assert_type([array // 2, array % 2, array**2, array @ array, array & 1, array | 1, array ^ 1], list[oc.Array])
    assert_type([array << 1, array >> 1, array == 1, array != 1, array < 1, array <= 1], list[oc.Array])
    assert_type([array > 1, array >= 1], list[oc.Array])
    assert_type(divmod(array, 2), tuple[oc.Array, oc.Array])
    assert_type([float(array), complex(array).real], list[float])
    assert_type(bool(array), bool)
