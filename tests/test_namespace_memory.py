"""In an eighth of its input every public function streams, or refuses with what it needs, and that is enough.

One function stands for all that are carried out the same way (`ALIKE`). Those that refuse are listed with the memory
that lets them run, so that none is added, and none stays on the list that streams.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.calls import CALLS, CREATION
from support.namespace import Given, save, targets_of
from support.running import session

import outcore as oc
from outcore.errors import MemoryLimitError

MIB = 1 << 20
INPUT_MIB = 91  # 95 million bytes; tiles are 4 MiB, so that an eighth is almost three of them
ALIKE = {
    "exp": "abs acos acosh add allclose array_equal array_equiv asin asinh atan atan2 atanh bitwise_and bitwise_invert "
    "bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor cbrt ceil clip conj copysign cos cosh divide equal "
    "exp2 expm1 floor floor_divide greater greater_equal hypot imag isclose isfinite isinf isnan less less_equal log "
    "log10 log1p log2 logaddexp logical_not map maximum minimum multiply nan_to_num negative nextafter not_equal "
    "piecewise positive pow real reciprocal remainder round sign signbit sin sinh sqrt square subtract tan tanh trunc",
    "logical_and": "logical_or logical_xor",
    "where": "choose select",
    "map_blocks": "vectorize",
    "ravel_multi_index": "unravel_index",
    "sum": "all any apply_over_axes argmax argmin average count_nonzero histogram_bin_edges max mean min prod ptp "
    "stats.gmean stats.hmean stats.sem stats.variation std trapezoid linalg.matrix_norm linalg.trace "
    "linalg.vector_norm",
    "nanvar": "nanargmax nanargmin nanmax nanmean nanmin nanprod nanstd nansum",
    "cumulative_sum": "cumprod cumsum cumulative_prod",
    "cummax": "cummin nancumprod nancumsum",
    "stats.kurtosis": "stats.describe stats.moment stats.skew stats.summary",
    "cov": "corrcoef stats.corrcoef stats.cov",
    "quantile": "median nanmedian nanpercentile nanquantile percentile stats.iqr",
    "groupby": "GroupBy.aggregate GroupBy.count GroupBy.keys GroupBy.max GroupBy.mean GroupBy.min GroupBy.prod "
    "GroupBy.std GroupBy.sum GroupBy.var bincount",
    "GroupBy.cumsum": "GroupBy.cumcount GroupBy.cummax GroupBy.cummin GroupBy.cumprod",
    "GroupBy.first": "GroupBy.last",
    "GroupBy.argmin": "GroupBy.argmax",
    "histogram": "histogramdd",
    "permute_dims": "atleast_1d atleast_2d atleast_3d broadcast_arrays expand_dims fliplr linalg.matrix_transpose "
    "matrix_transpose moveaxis rot90 squeeze swapaxes tril triu",
    "flip": "flipud",
    "concat": "append column_stack dstack hstack stack vstack",
    "roll": "fft.fftshift fft.ifftshift",
    "insert": "delete pad",
    "split": "array_split",
    "repeat": "tile",
    "packbits": "unpackbits",
    "diff": "ediff1d",
    "reshape": "resize",
    "unstack": "broadcast_to",
    "sort": "argpartition argsort partition",
    "unique": "mode setxor1d unique_counts unique_values",
    "unique_inverse": "categories unique_all",
    "sort_by": "lexsort permute sort_complex",
    "take": "permute_inverse take_along_axis",
    "nonzero": "argwhere trim_zeros",
    "rolling_mean": "rolling_max rolling_min rolling_sum",
    "rolling_var": "rolling_std",
    "convolve": "correlate",
    "matmul": "einsum linalg.matmul linalg.outer linalg.tensordot tensordot",
    "vecdot": "linalg.vecdot",
    "linalg.inv": "linalg.cholesky linalg.det linalg.eig linalg.eigh linalg.eigvals linalg.eigvalsh "
    "linalg.matrix_power linalg.slogdet linalg.solve linalg.solve_triangular",
    "linalg.pinv": "linalg.cond linalg.matrix_rank",
    "linalg.qr": "linalg.svd",
    "fft.fft": "fft.hfft fft.ifft fft.ihfft fft.irfft fft.rfft",
    "fft.fftn": "fft.ifftn fft.irfftn fft.rfftn",
}
OF_SMALL_INPUT = dict.fromkeys(CREATION, "reads nothing, or one small array")
# A tile that is read, one that is written, and one more or the values between.
FOUR_TILES = ("convolve", "diff", "flip", "histogram", "linalg.cross", "linalg.lstsq", "linalg.pinv", "logical_and")
FOUR_TILES += ("kron", "nonzero", "rolling_mean", "unique", "unwrap")
# MiB that are enough, of whatever size the input is.
REFUSED = {
    **dict.fromkeys(FOUR_TILES, 17),
    **dict.fromkeys(("cumulative_sum", "gradient", "insert", "interp", "linalg.qr", "roll", "split"), 22),
    **dict.fromkeys(("searchsorted", "sort", "sort_by", "take", "top_k"), 25),
    "i0": 34,
    "rolling_var": 33,
    "map_blocks": 41,
    **dict.fromkeys(("GroupBy.cumsum", "GroupBy.median"), 34),
    "GroupBy.rank": 35,
    "unique_inverse": 66,
    "fft.fftn": 22,
    "map_overlap": 105,
    "quantile": 80,
}
# MiB for this input; twice as much for one twice as long.
GROWING = {"linalg.diagonal": 100}

COVERED = {name for names in ALIKE.values() for name in names.split()}
WALKED = [name for name in CALLS if name not in COVERED and name not in OF_SMALL_INPUT]


@pytest.fixture(scope="module")
def stored(shared: Path) -> Path:
    save(shared, INPUT_MIB)
    return shared


def test_every_function_is_walked_or_like_one_that_is() -> None:
    assert not COVERED & (set(ALIKE) | set(OF_SMALL_INPUT))
    assert COVERED | set(OF_SMALL_INPUT) | set(WALKED) == set(CALLS)
    assert set(WALKED) >= {*ALIKE, *REFUSED, *GROWING}


def an_eighth_of_its_input(name: str, stored: Path) -> int:
    given = Given(stored)
    with session():
        CALLS[name](given)
    assert given.bytes_used >= 64_000_000
    return given.bytes_used // 8


def run(name: str, pool: int, stored: Path, out: Path, scratch: Path) -> Any:
    with session(scratch, pool_limit=pool) as current:
        targets = targets_of(CALLS[name](Given(stored)), out)
        for array in targets.values():
            _ = array.shape
        current.clear()
        return oc.store(targets)


def enough(refused: MemoryLimitError) -> int:
    """The pool that a refusal names, which must say what it knows."""
    facts = (refused.operator, refused.need, refused.limit, refused.smallest)
    if None in facts or refused.need <= refused.limit or refused.smallest < refused.need:
        pytest.fail(f"{facts} do not explain a refusal")
    return int(refused.smallest)


@pytest.mark.parametrize("name", WALKED)
def test_an_eighth_of_the_input_is_enough_or_refused(name: str, stored: Path, out: Path, scratch: Path) -> None:
    pool = an_eighth_of_its_input(name, stored)
    known = REFUSED.get(name) or GROWING.get(name)
    tried = [pool]
    while True:
        try:
            outcome = run(name, tried[-1], stored, out, scratch)
            break
        except MemoryLimitError as refused:
            tried.append(enough(refused))
        assert len(tried) <= 3, f"refused with what refusals name: {tried}"
    assert outcome.peak_bytes <= tried[-1]
    assert (len(tried) > 1) == (known is not None), "functions that refuse are those on the lists"
    assert tried[-1] <= max(pool, (known or 0) * MIB)


def test_all_that_is_fused_fits(stored: Path, out: Path, scratch: Path) -> None:
    """What `exp` stands for is many functions of one or two arrays: the planner is asked for each, without a run."""
    for name in ("exp", *ALIKE["exp"].split()):
        with session(scratch, pool_limit=an_eighth_of_its_input(name, stored)):
            assert oc.explain(targets_of(CALLS[name](Given(stored)), out)).exact, name
