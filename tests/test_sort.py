"""External sorting: every type and direction, adversaries of the merge, and reads and writes counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import LARGE
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running import session

import outcore as oc
from outcore.errors import DTypeError, ShapeError

DTYPES = (
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
)
RUN = 1 << 16  # the shortest run
POOL = 16 << 20  # a merge of tiles of 4 MiB fits


def stable(keys: Any, descending: bool = False) -> Any:
    """Positions in NumPy's stable order; descending with NaN last and equal keys in their order."""
    if keys.dtype == np.float16:
        keys = keys.astype(np.float32)  # in the same order, which NumPy finds ten times as fast
    if not descending:
        return np.argsort(keys, kind="stable")
    ranks = np.unique(keys, return_inverse=True, equal_nan=True)[1].astype(np.int64)
    nan = np.isnan(keys) if keys.dtype.kind == "f" else np.zeros(keys.shape, bool)
    return np.argsort(np.where(nan, ranks.max(initial=0) + 1, -ranks), kind="stable")


def ordered(keys: Any, descending: bool = False) -> Any:
    """The keys in that order; of equal integers it does not matter which is which."""
    if keys.dtype.kind == "f":
        return keys[stable(keys, descending)]
    found = np.sort(keys, kind="stable")
    return found[::-1] if descending else found


def same_bits(found: Any, expected: Any) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def keys_of(dtype: str, count: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.random(count) < 0.3
    if dtype.startswith("float"):
        keys = random.normal(size=count).astype(dtype)
        keys[::17] = np.nan
        keys[1::19] = -0.0
        keys[2::19] = 0.0
        keys[3::23] = np.inf
        keys[4::23] = -np.inf
        return keys
    limits = np.iinfo(dtype)
    return random.integers(limits.min, limits.max, count, dtype=dtype, endpoint=True)


STAGES = {"merge": 2, "distribution": 3}
methods = pytest.mark.parametrize("method", STAGES)


# Each type by one of the methods in turn, at full size by both.
KINDS = [
    (dtype, place % 2 == 1, method)
    for place, dtype in enumerate(DTYPES)
    for number, method in enumerate(STAGES)
    if LARGE or (place // 2 + number) % len(STAGES) == 0
]


@pytest.mark.parametrize(("dtype", "descending", "method"), KINDS)
def test_all_types_in_several_runs(
    dtype: str, descending: bool, method: Any, data: Path, out: Path, scratch: Path
) -> None:
    keys = keys_of(dtype, POOL // np.dtype(dtype).itemsize + 123)
    np.save(data / "x.npy", keys)
    with session(scratch, pool_limit=POOL):
        x = oc.open(data / "x.npy")
        outputs = {str(out / "y.npy"): oc.sort(x, descending=descending, method=method)}
        assert len(oc.explain(outputs).stages) == STAGES[method]
        oc.store(outputs)
    with session(scratch, pool_limit=4 * POOL):
        oc.store({str(out / "i.npy"): oc.argsort(x[: 5 * RUN + 5], descending=descending, method=method)})
    assert same_bits(np.load(out / "y.npy"), ordered(keys, descending))
    assert np.array_equal(np.load(out / "i.npy"), stable(keys[: 5 * RUN + 5], descending))


ADVERSARIES = {
    "presorted": lambda n: np.arange(n),
    "reversed": lambda n: np.arange(n)[::-1].copy(),
    "equal": lambda n: np.zeros(n, np.int64),
    "two keys": lambda n: np.arange(n) % 2,
    "equal across splitters": lambda n: np.where(np.arange(n) % 3 == 0, np.arange(n), n // 2),
    "one giant run of keys below": lambda n: np.where(np.arange(n) < n // 2, -np.arange(n), np.arange(n)),
    "interleaved": lambda n: np.arange(n) * 7919 % n,
    "sawtooth": lambda n: np.arange(n) % RUN,
    "organ pipe": lambda n: np.minimum(np.arange(n), n - np.arange(n)),
    "blocks of a page": lambda n: np.arange(n) // 512 * 7919 % n,
}


@methods
@pytest.mark.parametrize("name", ADVERSARIES)
def test_no_input_takes_more_than_was_reserved(name: str, method: Any, data: Path, out: Path, scratch: Path) -> None:
    keys = ADVERSARIES[name](13 * RUN + 77).astype(np.int64)
    np.save(data / "x.npy", keys)
    with session(scratch, pool_limit=POOL):
        targets = {str(out / "y.npy"): oc.sort(oc.open(data / "x.npy"), method=method)}
        said = oc.explain(targets)
        outcome = oc.store(targets)
    assert len(said.stages) == STAGES[method]
    assert np.array_equal(np.load(out / "y.npy"), np.sort(keys))
    assert outcome.peak_bytes <= said.peak_bytes <= POOL
    for forecast, counted in outcome.other["stages"]:
        assert list(forecast) == list(counted)
    assert outcome.bytes_read <= said.bytes_read
    assert outcome.bytes_written == said.bytes_written


def test_a_sample_that_misleads_costs_time_and_no_memory(data: Path, out: Path, scratch: Path) -> None:
    """All pages that are looked at say that keys are spread evenly; all others hold keys of a narrow range."""
    count = 40 * RUN
    random = np.random.default_rng(5)
    keys = random.permutation(count) + (1 << 40)
    step = 63  # one page of 64, and odd
    keys.reshape(-1, 512)[::step] = random.integers(0, 1 << 62, (len(range(0, count // 512, step)), 512))
    np.save(data / "x.npy", keys)
    with session(scratch, pool_limit=POOL):
        outcome = oc.store({str(out / "y.npy"): oc.sort(oc.open(data / "x.npy"), method="distribution")})
    assert len(outcome.other["stages"]) == 4, "the runs were sorted and merged after all"
    assert np.array_equal(np.load(out / "y.npy"), np.sort(keys))
    assert outcome.peak_bytes <= POOL


@settings(max_examples=12, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.integers(8 * RUN, 16 * RUN),
    distinct=st.sampled_from([1, 2, 3, 50, 70_000, 2**62]),
    rising=st.floats(0, 1),
    method=st.sampled_from(sorted(STAGES)),
)
def test_any_mixture_is_cut_exactly(seed: int, length: int, distinct: int, rising: float, method: Any) -> None:
    random = np.random.default_rng(seed)
    keys = random.integers(-distinct, distinct, length)
    ordered = int(length * rising)
    keys[:ordered].sort()
    values = np.arange(length)
    # What is merged at once, and both results in memory, come to a little more than twice as much at most.
    with session(pool_limit=2 * POOL + (64 << 10)):
        sorted_keys, positions = oc.sort_by(oc.asarray(keys), oc.asarray(values), method=method)
        found = oc.compute(sorted_keys, positions)
    order = np.argsort(keys, kind="stable")
    assert np.array_equal(found[0], keys[order])
    assert np.array_equal(found[1], order)


def test_two_reads_and_two_writes(data: Path, out: Path, scratch: Path) -> None:
    keys = np.random.default_rng(5).integers(0, 1 << 60, 6 << 20)
    np.save(data / "x.npy", keys)
    with session(scratch, pool_limit=24 << 20):
        outcome = oc.store({str(out / "y.npy"): oc.sort(oc.open(data / "x.npy"))})
    moved = (outcome.bytes_read + outcome.bytes_written) / (4 * keys.nbytes)
    assert 1 <= moved <= 1.02, moved


def test_bounds_count_on_nothing_that_an_earlier_stage_may_displace(data: Path, out: Path, scratch: Path) -> None:
    random = np.random.default_rng(8)
    for name in ("x", "keys"):
        np.save(data / f"{name}.npy", random.normal(size=1_500_000))
    with session(scratch, pool_limit=60 << 20):
        x, keys = oc.open(data / "x.npy"), oc.open(data / "keys.npy")
        oc.compute(x.sum())
        targets = {str(out / "y.npy"): oc.permute(x, oc.argsort(keys))}
        said = oc.explain(targets)
        outcome = oc.store(targets)
    assert outcome.bytes_read <= said.bytes_read


def test_what_fits_is_sorted_in_one_stage(data: Path, out: Path) -> None:
    keys = np.random.default_rng(6).normal(size=1 << 20)
    np.save(data / "x.npy", keys)
    with session(pool_limit=256 << 20):
        said = oc.explain({str(out / "y.npy"): oc.sort(oc.open(data / "x.npy"))})
    assert said.exact
    assert said.bytes_read < 1.01 * keys.nbytes


def test_a_sort_is_part_of_an_expression(scratch: Path) -> None:
    x = np.random.default_rng(7).normal(size=20 * RUN)
    with session(scratch, pool_limit=POOL):
        lazy = oc.asarray(x)
        ordered = oc.sort(lazy * 2)
        found = oc.compute((ordered[1:] - ordered[:-1]).max(), oc.sort(-ordered)[:3], ordered.sum())
    expected = np.sort(x * 2)
    assert found[0] == np.diff(expected).max()
    assert np.array_equal(found[1], np.sort(-expected)[:3])
    np.testing.assert_allclose(found[2], expected.sum())


def test_short_arrays() -> None:
    for keys in (np.array([]), np.array([3.0]), np.array([2, 1])):
        assert same_bits(oc.sort(oc.asarray(keys)).compute(), np.sort(keys))
        assert np.array_equal(oc.argsort(oc.asarray(keys)).compute(), np.argsort(keys))


def test_bad_input_names_both_sides() -> None:
    with pytest.raises(DTypeError, match="complex128 has no order"):
        oc.sort_by(np.array([1j]))
    with pytest.raises(ShapeError, match=r"\(3,\).*\(2,\)"):
        oc.sort_by(np.arange(3), np.arange(2))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(0,), (90,), (6, 15), (3, 5, 6)])
def test_complex_numbers_are_in_numpys_order(dtype: str, shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(2)
    x = random.choice([0.0, -0.0, 1, -2, np.inf, -np.inf, np.nan], shape).astype(dtype)
    x.imag = random.choice([0.0, 1, -2, np.inf, np.nan], shape)
    with session():
        for axis in range(len(shape)):
            np.testing.assert_array_equal(oc.sort(x, axis=axis).compute(), np.sort(x, axis=axis, kind="stable"))
            order = oc.argsort(oc.asarray(x), axis=axis).compute()
            np.testing.assert_array_equal(order, np.argsort(x, axis=axis, kind="stable"))
        np.testing.assert_array_equal(np.sort(oc.asarray(x), axis=None), np.sort(x, axis=None))


def test_complex_numbers_descend_with_nan_behind_them() -> None:
    x = np.asarray([1 + 2j, complex(np.nan, 0), 3, 1 - 1j, complex(2, np.nan)])
    expected = [3, 1 + 2j, 1 - 1j, complex(2, np.nan), complex(np.nan, 0)]
    with session():
        np.testing.assert_array_equal(oc.sort(x, descending=True).compute(), expected)


@pytest.mark.parametrize("positions", [False, True])
@pytest.mark.parametrize("descending", [False, True])
def test_columns_that_no_task_can_hold_are_sorted_as_rows(positions: bool, descending: bool, tmp_path: Path) -> None:
    """Columns of 12 MB in 28 MiB of memory: longer ones and shorter ones fit, so these do."""
    values = np.random.default_rng(5).integers(0, 1000, size=(1_500_000, 3)).astype("float64")
    values[::777] = np.nan
    np.save(tmp_path / "x.npy", values)
    with session(pool_limit=28 << 20):
        x = oc.open(tmp_path / "x.npy")
        lazy = (oc.argsort if positions else oc.sort)(x, axis=0, descending=descending)
        plan = oc.explain({tmp_path / "y.npy": lazy})
        done = oc.store({tmp_path / "y.npy": lazy})
    assert plan.bytes_read >= done.bytes_read
    found = np.load(tmp_path / "y.npy")
    keys = np.where(np.isnan(values), np.inf, -values if descending else values)
    places = np.argsort(keys, axis=0, kind="stable")
    expected = places if positions else np.take_along_axis(values, places, axis=0)
    np.testing.assert_array_equal(found, expected)


def test_columns_move_less_with_more_memory(tmp_path: Path) -> None:
    np.lib.format.open_memmap(tmp_path / "x.npy", mode="w+", dtype="f8", shape=(2_000_000, 64)).flush()
    moved = []
    for pool in (620, 680, 740, 780, 820):
        with oc.Session(memory_limit="6GiB", pool_limit=pool << 20, threads=2):
            said = oc.explain({tmp_path / "y.npy": oc.sort(oc.open(tmp_path / "x.npy"), axis=0)})
            moved.append(said.bytes_read + said.bytes_written)
    assert moved == sorted(moved, reverse=True)
    assert moved[0] < 5 * (tmp_path / "x.npy").stat().st_size
