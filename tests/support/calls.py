"""The table of `support.namespace`: one call for each public function that makes an array."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

import outcore as oc
from support.namespace import GROUPS, Call, function


def _on(names: Iterable[str], arguments: Any, **options: Any) -> dict[str, Call]:
    """A call of each function with the arguments that are made of the inputs."""

    def of(name: str) -> Call:
        return lambda given: function(name)(*arguments(given), **options)

    return {name: of(name) for name in names}


def _names(text: str, prefix: str = "") -> list[str]:
    return [prefix + name for name in text.split()]


ELEMENTWISE = {
    **_on(
        _names(
            "abs acos acosh asin asinh atan atanh cbrt ceil cos cosh exp exp2 expm1 floor i0 isfinite isinf isnan log "
            "log10 log1p log2 nan_to_num negative positive reciprocal round sign signbit sin sinh sqrt square tan tanh "
            "trunc"
        ),
        lambda given: (given.x,),
    ),
    **_on(
        _names(
            "add allclose array_equal array_equiv atan2 copysign divide equal floor_divide greater greater_equal hypot "
            "isclose less less_equal logaddexp maximum minimum multiply nextafter not_equal pow remainder subtract"
        ),
        lambda given: (given.x, given.y),
    ),
    **_on(
        _names("bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor"),
        lambda given: (given.n, 3),
    ),
    **_on(_names("logical_and logical_or logical_xor"), lambda given: (given.flags, given.flags[::-1])),
    **_on(_names("conj real imag"), lambda given: (given.z,)),
    "bitwise_invert": lambda given: oc.bitwise_invert(given.n),
    "logical_not": lambda given: oc.logical_not(given.flags),
    "astype": lambda given: oc.astype(given.x, np.float32),
    "clip": lambda given: oc.clip(given.x, -0.5, 0.5),
    "where": lambda given: oc.where(given.x > 0, given.x, given.y),
    "select": lambda given: oc.select([given.x > 0.5, given.y > 0.5], [given.x, given.y], 0.0),
    "piecewise": lambda given: oc.piecewise(given.x, [given.x < 0], [lambda x: -x, 1.0]),
    "choose": lambda given: oc.choose(given.lanes % 2, [given.x, given.y]),
    "map": lambda given: oc.map(lambda x, y: 0.5 * x + y, given.x, given.y),
    "map_blocks": lambda given: oc.map_blocks(np.exp, given.x),
    "vectorize": lambda given: oc.vectorize(lambda x: 2 * x + 1)(given.x),
    "ravel_multi_index": lambda given: oc.ravel_multi_index((given.labels, given.labels), (GROUPS, GROUPS)),
    "unravel_index": lambda given: oc.unravel_index(given.labels, (10, 5)),
    "digitize": lambda given: oc.digitize(given.x, np.linspace(-1, 1, 9)),
    "interp": lambda given: oc.interp(given.x, np.linspace(-1, 1, 9), np.arange(9.0)),
}

CREATION = {
    **_on(_names("empty ones zeros"), lambda _: ((1152, 1024),)),
    **_on(_names("empty_like ones_like zeros_like"), lambda given: (given.x,)),
    "arange": lambda _: oc.arange(1 << 20),
    "asarray": lambda _: oc.asarray(np.ones(1 << 18)),
    "eye": lambda _: oc.eye(1024),
    "from_dlpack": lambda _: oc.from_dlpack(np.ones(1 << 18)),
    "fromfunction": lambda _: oc.fromfunction(lambda i, j: i - j, (1024, 1024)),
    "full": lambda _: oc.full((1152, 1024), 2.0),
    "full_like": lambda given: oc.full_like(given.x, 2.0),
    "geomspace": lambda _: oc.geomspace(1.0, 10.0, 1 << 20),
    "linspace": lambda _: oc.linspace(0.0, 1.0, 1 << 20),
    "logspace": lambda _: oc.logspace(0.0, 1.0, 1 << 20),
    "meshgrid": lambda given: oc.meshgrid(given.v[:1024], given.w[:512]),
    "diag_indices_from": lambda given: oc.diag_indices_from(given.square),
    "tril_indices_from": lambda given: oc.tril_indices_from(given.square),
    "triu_indices_from": lambda given: oc.triu_indices_from(given.square),
    "ix_": lambda given: oc.ix_(given.labels, given.labels[:9]),
    "fft.fftfreq": lambda _: oc.fft.fftfreq(1 << 20),
    "fft.rfftfreq": lambda _: oc.fft.rfftfreq(1 << 20),
    "random.choice": lambda given: oc.random.choice(given.x, 20, seed=1),
    "random.integers": lambda _: oc.random.integers((1152, 1024), 0, 9, seed=1),
    "random.normal": lambda _: oc.random.normal((1152, 1024), seed=1),
    "random.uniform": lambda _: oc.random.uniform((1152, 1024), seed=1),
}

REDUCTIONS = {
    **_on(
        _names(
            "argmax argmin cummax cummin max mean min nanargmax nanargmin nancumprod nancumsum nanmax nanmean "
            "nanmedian nanmin nanprod nanstd nansum nanvar median prod ptp std sum var"
        ),
        lambda given: (given.x,),
        axis=0,
    ),
    **_on(_names("percentile nanpercentile"), lambda given: (given.x, [5, 50]), axis=0),
    **_on(_names("quantile nanquantile"), lambda given: (given.x, [0.05, 0.5]), axis=0),
    **_on(_names("cumulative_prod cumulative_sum"), lambda given: (given.x,), axis=0, include_initial=True),
    **_on(_names("cumprod cumsum"), lambda given: (given.x,), axis=0),
    **_on(
        _names("gmean hmean iqr kurtosis moment sem skew variation zscore describe summary", "stats."),
        lambda given: (oc.abs(given.x),),
    ),
    **_on(_names("corrcoef cov", "stats."), lambda given: (given.tall,)),
    "aggregate": lambda given: oc.aggregate(given.x, lambda a, b: a + b - a * b, identity=0, axis=1),
    "all": lambda given: oc.all(given.flags, axis=0),
    "any": lambda given: oc.any(given.flags, axis=0),
    "apply_over_axes": lambda given: oc.apply_over_axes(oc.sum, given.x, (0, 1)),
    "average": lambda given: oc.average(given.x, axis=0, weights=given.y),
    "corrcoef": lambda given: oc.corrcoef(given.tall, rowvar=False),
    "count_nonzero": lambda given: oc.count_nonzero(given.n, axis=0),
    "cov": lambda given: oc.cov(given.tall, rowvar=False),
    "trapezoid": lambda given: oc.trapezoid(given.x, axis=0),
    "bincount": lambda given: oc.bincount(given.labels, weights=given.w),
    "histogram": lambda given: oc.histogram(given.x, 20, range=(-1, 1)),
    "histogram2d": lambda given: oc.histogram2d(given.v, given.w, 20, range=[(-1, 1), (0, 2)]),
    "histogram_bin_edges": lambda given: oc.histogram_bin_edges(given.x, 20),
    "histogramdd": lambda given: oc.histogramdd(given.threes, 5, range=[(-1, 1)] * 3),
    "mode": lambda given: oc.mode(given.labels),
    "groupby": lambda given: oc.groupby(given.labels).sum(given.v),
    **{
        f"GroupBy.{name}": lambda given, name=name: getattr(oc.groupby(given.labels, groups=GROUPS), name)(given.v)
        for name in dir(oc.GroupBy)
        if not name.startswith("_") and name not in ("agg", "aggregate", "count", "cumcount", "keys", "transform")
    },
    "GroupBy.aggregate": lambda given: oc.groupby(given.labels, groups=GROUPS).aggregate(given.v, ["min", "std"]),
    "GroupBy.agg": lambda given: oc.groupby(given.labels, groups=GROUPS).agg(given.v, "mean"),
    "GroupBy.cumcount": lambda given: oc.groupby(given.labels, groups=GROUPS).cumcount(),
    "GroupBy.transform": lambda given: oc.groupby(given.labels, groups=GROUPS).transform(given.v, "mean"),
    "GroupBy.keys": lambda given: oc.groupby(given.labels).keys,
    "GroupBy.count": lambda given: oc.groupby(given.labels, groups=GROUPS).count(),
}

MANIPULATION = {
    **_on(
        _names("atleast_1d atleast_2d atleast_3d flip fliplr flipud matrix_transpose rot90 tril triu"),
        lambda given: (given.x,),
    ),
    "linalg.matrix_transpose": lambda given: oc.linalg.matrix_transpose(given.x),
    **_on(_names("column_stack concat dstack hstack stack vstack"), lambda given: ((given.x, given.y),)),
    **_on(_names("fftshift ifftshift", "fft."), lambda given: (given.x,)),
    "append": lambda given: oc.append(given.x, given.y, axis=0),
    "array_split": lambda given: oc.array_split(given.x, 3),
    "broadcast_arrays": lambda given: oc.broadcast_arrays(given.x, given.x[0]),
    "broadcast_to": lambda given: oc.broadcast_to(given.x[0], (1152, 1024)),
    "delete": lambda given: oc.delete(given.x, [1, 5], axis=0),
    "diff": lambda given: oc.diff(given.x, axis=0),
    "ediff1d": lambda given: oc.ediff1d(given.v),
    "expand_dims": lambda given: oc.expand_dims(given.x, 1),
    "gradient": lambda given: oc.gradient(given.x, axis=0),
    "insert": lambda given: oc.insert(given.x, 5, 1.0, axis=0),
    "moveaxis": lambda given: oc.moveaxis(given.x, 0, 1),
    "packbits": lambda given: oc.packbits(given.flags, axis=1),
    "pad": lambda given: oc.pad(given.x, 3),
    "permute_dims": lambda given: oc.permute_dims(given.x, (1, 0)),
    "rechunk": lambda given: oc.rechunk(given.x, (256, 256)),
    "repeat": lambda given: oc.repeat(given.x, 2, axis=0),
    "reshape": lambda given: oc.reshape(given.x, (-1, 64)),
    "resize": lambda given: oc.resize(given.x, (1000, 1000)),
    "roll": lambda given: oc.roll(given.x, 100, axis=0),
    "split": lambda given: oc.split(given.x, 2),
    "squeeze": lambda given: oc.squeeze(given.x[None], 0),
    "swapaxes": lambda given: oc.swapaxes(given.x, 0, 1),
    "transpose": lambda given: oc.transpose(given.x),
    "tile": lambda given: oc.tile(given.x, (2, 1)),
    "unpackbits": lambda given: oc.unpackbits(oc.packbits(given.flags, axis=1), axis=1),
    "unstack": lambda given: oc.unstack(given.x[:4]),
}

ORDER = {
    **_on(_names("sort argsort unwrap"), lambda given: (given.x,), axis=1),
    **_on(_names("partition argpartition"), lambda given: (given.x, 9), axis=1),
    **_on(_names("isin searchsorted"), lambda given: (given.w, given.v[:1000])),
    **_on(
        _names("argwhere categories nonzero trim_zeros unique unique_all unique_counts unique_inverse unique_values"),
        lambda given: (given.labels,),
    ),
    "apply_along_axis": lambda given: oc.apply_along_axis(np.median, 1, given.x),
    "compress": lambda given: oc.compress(given.w > 1, given.v),
    "lexsort": lambda given: oc.lexsort((given.v, given.labels)),
    "permute": lambda given: oc.permute(given.v, given.order),
    "permute_inverse": lambda given: oc.permute_inverse(given.v, given.order),
    "setxor1d": lambda given: oc.setxor1d(given.labels, given.labels[:100] + 7),
    "sort_by": lambda given: oc.sort_by(given.v, given.w),
    "sort_complex": lambda given: oc.sort_complex(given.z.ravel()),
    "take": lambda given: oc.take(given.v, given.places),
    "take_along_axis": lambda given: oc.take_along_axis(given.x, given.lanes, axis=1),
    "top_k": lambda given: oc.top_k(given.v, 100),
}

WINDOWS = {
    **_on(
        _names("rolling_max rolling_mean rolling_min rolling_std rolling_sum rolling_var"),
        lambda given: (given.x, 7),
        axis=0,
    ),
    "pyramid": lambda given: list(oc.pyramid(given.x, 3).values()),
    "block_reduce": lambda given: oc.block_reduce(given.x, (4, 4)),
    "convolve": lambda given: oc.convolve(given.v, np.ones(9)),
    "correlate": lambda given: oc.correlate(given.v, np.ones(9)),
    "map_overlap": lambda given: oc.map_overlap(lambda x: x * 2, given.x, depth=1, boundary="reflect"),
}

PRODUCTS = {
    "einsum": lambda given: oc.einsum("ij,ik->jk", given.tall, given.tall),
    "inner": lambda given: oc.inner(given.tall, given.square[:16, :4], "add", "min"),
    "kron": lambda given: oc.kron(given.x[:64], np.ones((4, 4))),
    **_on(_names("matmul linalg.matmul"), lambda given: (given.tall.T, given.tall)),
    **_on(_names("tensordot linalg.tensordot"), lambda given: (given.tall, given.tall), axes=([0], [0])),
    **_on(_names("vecdot linalg.vecdot"), lambda given: (given.x, given.y)),
    "linalg.outer": lambda given: oc.linalg.outer(given.v[:2000], given.w[:500]),
    "linalg.cross": lambda given: oc.linalg.cross(given.threes, given.threes[::-1]),
    "linalg.diagonal": lambda given: oc.linalg.diagonal(given.small),
    "linalg.trace": lambda given: oc.linalg.trace(given.small),
    "linalg.matrix_norm": lambda given: oc.linalg.matrix_norm(given.small),
    "linalg.vector_norm": lambda given: oc.linalg.vector_norm(given.x, axis=0),
    "linalg.matrix_power": lambda given: oc.linalg.matrix_power(given.small, 3),
}

FACTORIZATIONS = {
    **_on(
        _names("cond det eig eigvals inv matrix_rank pinv slogdet", "linalg."),
        lambda given: (given.small,),
    ),
    **_on(_names("cholesky eigh eigvalsh", "linalg."), lambda given: (given.definite,)),
    "linalg.solve": lambda given: oc.linalg.solve(given.definite, given.small),
    "linalg.solve_triangular": lambda given: oc.linalg.solve_triangular(given.definite[0], given.small[0]),
    "linalg.lstsq": lambda given: oc.linalg.lstsq(given.tall, given.tall[:, 0]),
    "linalg.qr": lambda given: oc.linalg.qr(given.tall),
    "linalg.svd": lambda given: oc.linalg.svd(given.tall, full_matrices=False),
    "linalg.svdvals": lambda given: oc.linalg.svdvals(given.tall),
}

FOURIER = {
    **_on(_names("fft hfft ifft ihfft irfft rfft", "fft."), lambda given: (given.x,)),
    **_on(_names("fftn ifftn irfftn rfftn", "fft."), lambda given: (given.x,)),
}

CALLS: dict[str, Call] = {
    **ELEMENTWISE,
    **CREATION,
    **REDUCTIONS,
    **MANIPULATION,
    **ORDER,
    **WINDOWS,
    **PRODUCTS,
    **FACTORIZATIONS,
    **FOURIER,
}

MAKES_NO_ARRAY = {
    **dict.fromkeys(_names("can_cast finfo iinfo isdtype result_type"), "tells of types"),
    "broadcast_shapes": "tells of shapes",
    **dict.fromkeys(_names("compute store persist"), "runs what the others make; the walk itself stores"),
    **dict.fromkeys(_names("explain visualize"), "shows what is run; the walk itself explains"),
    "clear": "gives up what the session keeps",
    **dict.fromkeys(_names("group region"), "names arrays; tests/test_groups.py and test_append.py hold them"),
    **dict.fromkeys(
        _names("table read_parquet to_parquet read_arrow read_csv from_arrow open_table"),
        "makes tables; tests/test_tables.py",
    ),
    **dict.fromkeys(_names("cho_factor cho_solve", "linalg."), "runs when called; tests/test_cho_factor.py holds it"),
    **dict.fromkeys(_names("lu_factor lu_solve", "linalg."), "runs when called; tests/test_lu_factor.py holds it"),
    "linalg.ldl_factor": "runs when called; tests/test_ldl_factor.py holds it",
    "linalg.qr_factor": "runs when called; tests/test_qr_factor.py holds it",
    "linalg.open_factor": "opens a file of its own; tests/test_lu_factor.py holds it",
    "open": "makes the inputs of the walk",
    "jit": "compiles a function, where numba is installed; tests/test_jit.py calls what it gives",
    "loops": "reads a function; tests/test_loops_syntax.py holds the programs that it makes",
    "iterate": "runs a program for every turn, which tests/test_iterate.py holds against their forecasts",
}
