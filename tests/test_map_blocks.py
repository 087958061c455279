"""Functions of the user over tiles: what they may do, what is refused, and that none of it hangs."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, FunctionError, MemoryLimitError, ShapeError

LONG = (100_003, 24)


def long_array(tmp_path: Path) -> Any:
    values = np.random.default_rng(0).standard_normal(LONG)
    np.save(tmp_path / "x.npy", values)
    return values


@pytest.mark.parametrize("whole", [0, (0,), [0, 1], -2])
def test_an_axis_declared_whole_arrives_uncut(whole: Any, tmp_path: Path) -> None:
    values = long_array(tmp_path)
    seen: set[int] = set()

    def sort(tile: Any) -> Any:
        seen.add(tile.shape[0])
        return np.sort(tile, axis=0)

    lazy = oc.map_blocks(sort, oc.open(tmp_path / "x.npy"), dtype="f8", whole=whole)
    with session(pool_limit=512 << 20):
        np.testing.assert_array_equal(oc.compute(lazy), np.sort(values, axis=0))
    assert seen == {LONG[0]}


def test_an_axis_stays_whole_whatever_is_around_it(tmp_path: Path) -> None:
    """Neither finer tiles of a consumer, nor those of another input, nor chunks of the output cut it."""
    values = long_array(tmp_path)
    x = oc.open(tmp_path / "x.npy")
    lazy = oc.map_blocks(lambda a, b: np.cumsum(a + b, axis=0), x, oc.zeros(LONG[1]), whole=0)
    expected = np.cumsum(values, axis=0)
    with session(pool_limit=256 << 20):
        np.testing.assert_allclose(oc.compute((lazy + x)[::-1].T), (expected + values)[::-1].T)
        oc.store({tmp_path / "y.zarr": lazy}, chunks={tmp_path / "y.zarr": (1000, 5)})
        np.testing.assert_allclose(oc.compute(oc.open(tmp_path / "y.zarr")), expected)


def test_a_whole_axis_that_cannot_fit_is_refused_before_anything_runs() -> None:
    lazy = oc.map_blocks(np.sort, oc.ones((1 << 28,)), dtype="f8", whole=0)
    with session(pool_limit=64 << 20), pytest.raises(MemoryLimitError) as refused:
        oc.compute(lazy.sum())
    assert refused.value.need is not None
    assert refused.value.need > 2 << 30


def test_whole_axes_must_exist() -> None:
    with pytest.raises(ShapeError, match="axis 2"):
        oc.map_blocks(np.sort, oc.ones((3, 4)), whole=2)


@pytest.mark.parametrize(
    ("function", "axis"),
    [
        (lambda tile: tile - tile.mean(axis=0), 0),
        (lambda tile: np.sort(tile, axis=-1), 1),
        (lambda tile: np.roll(tile, 1, axis=0), 0),
        (lambda tile: np.cumsum(tile, axis=1), 1),
    ],
)
def test_mixing_along_an_axis_that_is_not_declared_is_refused(function: Any, axis: int) -> None:
    with pytest.raises(ArgumentError, match=rf"along axis {axis}.*whole=\({axis},\)"):
        oc.map_blocks(function, oc.ones((300, 400)))
    x = np.random.default_rng(1).random((300, 400))
    with session():
        np.testing.assert_allclose(oc.compute(oc.map_blocks(function, oc.asarray(x), whole=axis)), function(x))


@pytest.mark.parametrize("dtype", ["f8", "f2", "i4", "?", "c16"])
def test_element_wise_functions_are_taken_as_they_are(dtype: str) -> None:
    x = np.ones((5, 6), dtype)
    with session():
        np.testing.assert_array_equal(oc.compute(oc.map_blocks(np.logical_not, oc.asarray(x))), np.zeros((5, 6), bool))
        np.testing.assert_array_equal(oc.compute(oc.map_blocks(np.exp, oc.asarray(x))), np.exp(x))


def test_random_functions_are_not_judged() -> None:
    lazy = oc.map_blocks(lambda tile: np.random.default_rng().random(tile.shape), oc.ones((50, 50)))
    with session():
        assert oc.compute(lazy).shape == (50, 50)


def test_a_result_of_another_shape_is_refused() -> None:
    with session(), pytest.raises(FunctionError, match=r"returned shape \[5\] for a block of shape \[5, 6\]"):
        oc.compute(oc.map_blocks(lambda tile: tile.sum(axis=1), oc.ones((5, 6)), dtype="f8"))


WAITING = """
    import signal, sys, threading
    from concurrent.futures import ThreadPoolExecutor
    import outcore as oc
    from outcore.errors import OutcoreError

    # A shell's background job, and its children with it, starts with interrupts ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    pool = ThreadPoolExecutor(1)
    ended = []

    def other():
        try:
            oc.compute(oc.ones((10,)).sum())
        except OutcoreError as error:
            ended.append(error)
            raise

    def waits(tile):
        future = pool.submit(other)
        print("waiting", flush=True)
        future.result()
        return tile

    @oc.loops
    def program(a):
        for i in range(len(a)):
            a[i, :] = waits(a[i, :])
        return a

    try:
        with oc.Session(memory_limit="1GiB", threads=2, progress=False):
            if sys.argv[1] == "map_blocks":
                oc.compute(oc.map_blocks(waits, oc.ones((10,)), dtype="f8"))
            else:
                oc.compute(program(oc.ones((1, 10))))
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    assert oc.compute(oc.ones((10,)).sum()) == 10
    (error,) = ended
    assert error.code == "cancelled" and "must not wait for another computation" in str(error), error
    print("done", flush=True)
"""


@pytest.mark.parametrize("of", ["map_blocks", "loops"])
def test_an_interrupt_ends_a_function_that_waits_for_another_computation(of: str, tmp_path: Path) -> None:
    """The function waits for a thread whose computation waits for the function's own program to end."""
    script = tmp_path / "waiting.py"
    script.write_text(textwrap.dedent(WAITING))
    command = [sys.executable, str(script), of]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    assert child.stdout.readline() == "waiting\n"
    child.send_signal(signal.SIGINT)
    try:
        said, errors = child.communicate(timeout=20)
    finally:
        child.kill()
    assert (said, errors, child.returncode) == ("interrupted\ndone\n", "", 0)


@pytest.mark.parametrize("whole", [(), 0, 1, (0, 1)])
@pytest.mark.parametrize("between", ["float64", "float32"])
def test_functions_over_the_same_tiles_are_one_task(whole: Any, between: str, tmp_path: Path) -> None:
    values = np.random.default_rng(1).standard_normal((3000, 700))
    np.save(tmp_path / "x.npy", values)
    with session():
        x = oc.open(tmp_path / "x.npy")
        first = oc.map_blocks(np.cbrt, x, dtype=between, whole=whole)
        second = oc.map_blocks(np.negative, first, dtype="float64", whole=whole)
        third = oc.map_blocks(np.sqrt, abs(second), dtype="float64", whole=whole)
        forecast = oc.explain({str(tmp_path / "y.npy"): third})
        assert len(forecast.passes) == 1
        assert forecast.bytes_spilled == 0
        np.testing.assert_allclose(
            third.compute(), np.sqrt(abs(np.cbrt(values).astype(between).astype("f8"))), rtol=1e-12
        )
