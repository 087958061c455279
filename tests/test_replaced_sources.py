"""Arrays stored over files that they are made of: their values are read from there, others tell to open again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import SourceChangedError

SUFFIXES = (".npy", ".zarr")


def made(path: Path, length: int = 1000) -> Any:
    """The numbers from 0 on, stored and opened."""
    oc.store({path: oc.arange(length, dtype=np.float64)})
    return oc.open(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_was_stored_goes_on(suffix: str, tmp_path: Path) -> None:
    path, wanted = tmp_path / f"x{suffix}", np.arange(1000.0) + 1
    with session() as current:
        x = made(path)
        y = x + 1
        before, alike = y * 2, oc.open(path) + 1
        oc.store({path: y}, overwrite=True)
        np.testing.assert_array_equal(y.compute(), wanted)
        np.testing.assert_array_equal(alike.compute(), wanted)
        for z in (before, y * 2):
            np.testing.assert_array_equal(z.compute(), wanted * 2)
        assert float((before - y).sum()) == wanted.sum()
        current.clear()
        assert oc.explain(y.sum()).bytes_read >= 8000
        for stale in (x, x + 2, x + y):
            with pytest.raises(SourceChangedError, match="open it again"):
                stale.sum().compute()
        np.testing.assert_array_equal(oc.open(path).compute(), wanted)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_loops_over_one_file(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"x{suffix}"
    with session():
        x = made(path)
        for _ in range(4):
            x = x * 2 + 1
            oc.store({path: x}, overwrite=True)
        np.testing.assert_array_equal(x.compute(), np.arange(1000.0) * 16 + 15)
        np.testing.assert_array_equal(oc.open(path).compute(), np.arange(1000.0) * 16 + 15)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_all_targets_of_a_call(suffix: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix}"
    numbers = np.arange(1000.0)
    with session():
        a, b = made(first), made(second)
        p, q, rows = a + b, a - 2 * b, (a.reshape(10, 100) + 1).sum(axis=1)
        both = p * q
        oc.store({first: p, second: q, tmp_path / f"c{suffix}": rows}, overwrite=True)
        np.testing.assert_array_equal(p.compute(), 2 * numbers)
        np.testing.assert_array_equal(q.compute(), -numbers)
        np.testing.assert_array_equal(both.compute(), -2 * numbers**2)
        np.testing.assert_array_equal((rows + 1).compute(), numbers.reshape(10, 100).sum(axis=1) + 101)
        with pytest.raises(SourceChangedError):
            (a + 1).compute()


def test_replaced_twice_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with session():
        x = made(path)
        y = x + 1
        oc.store({path: y}, overwrite=True)
        oc.store({path: oc.zeros(1000)}, overwrite=True)
        with pytest.raises(SourceChangedError):
            y.compute()


def test_in_another_session_and_by_another_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with session():
        made(tmp_path / "x.npy")
        y = oc.open("x.npy") + 1
        (tmp_path / "link.npy").symlink_to(tmp_path / "x.npy")
        oc.store({"link.npy": y}, overwrite=True)
    with session():
        np.testing.assert_array_equal(y.compute(), np.arange(1000.0) + 1)


@pytest.mark.parametrize("function", [oc.sort, oc.cumulative_sum, oc.unique_values, oc.median, lambda x: x[x > 10]])
def test_results_of_stages(function: Callable[[Any], Any], tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with session():
        y = function(made(path))
        wanted = y.compute()
        z = y + 1
        oc.store({path: y}, overwrite=True)
        np.testing.assert_array_equal(y.compute(), wanted)
        np.testing.assert_array_equal(z.compute(), wanted + 1)


def test_dates_and_text(tmp_path: Path) -> None:
    days, names = np.arange(10).astype("M8[D]"), np.asarray(["Rome", "Oslo"] * 5)
    np.save(tmp_path / "d.npy", days)
    np.save(tmp_path / "t.npy", names)
    with session():
        later = oc.open(tmp_path / "d.npy") + np.timedelta64(1, "D")  # type: ignore[operator]
        turned = oc.open(tmp_path / "t.npy")[::-1]
        oc.store({tmp_path / "d.npy": later, tmp_path / "t.npy": turned}, overwrite=True)
        np.testing.assert_array_equal(later.compute(), days + 1)
        np.testing.assert_array_equal(turned.compute(), names[::-1])


def test_the_same_bits_whatever_the_tiles(tmp_path: Path) -> None:
    path = tmp_path / "x.zarr"
    rng = np.random.default_rng(3)
    values = rng.normal(size=(700, 300)).astype(np.float32)
    with session():
        oc.store({path: oc.asarray(values)}, chunks={path: (70, 50)})
        y = oc.rechunk(oc.open(path) * 3, (200, 90))
        wanted = [y.sum().compute(), y.sum(axis=0).compute()]
        oc.store({path: y}, overwrite=True, chunks={path: (33, 300)})
        found = [y.sum().compute(), y.sum(axis=0).compute()]
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
