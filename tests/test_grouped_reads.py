"""Neighbouring tiles that cut the rows of a `.npy` file are read together: the right values, each byte once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import assert_nothing_but_kept, forecast, load, run, session

import outcore as oc
from outcore.errors import OutcoreError

# Rows of more than 64 KiB in arrays of more than 4 MiB are cut; the lengths are no multiples of anything.
CASES = {
    "f8": ("<f8", (150, 9001)),
    "f4, other byte order": (">f4", (90, 17003)),
    "bool": ("?", (71, 70001)),
    "complex": ("<c16", (83, 4801)),
    "three axes": ("<f4", (3, 31, 17003)),
}
PAGES = 64 << 10


def made(kind: str) -> np.ndarray:
    dtype, shape = CASES[kind]
    random = np.random.default_rng(3)
    if dtype == "?":
        return random.random(shape) < 0.5
    values = random.standard_normal(shape)
    return (values + 1j * values[::-1]).astype(dtype) if dtype == "<c16" else values.astype(dtype)


@pytest.mark.parametrize("kind", CASES)
def test_rows_are_read_once_and_whole(kind: str, data: Path, out: Path) -> None:
    expected = made(kind)
    np.save(data / "A.npy", expected)
    swapped = expected.swapaxes(-1, -2)
    for threads, pool in ((1, 60 << 20), (2, 100 << 20), (4, 400 << 20)):
        with session(pool_limit=pool, threads=threads):
            targets = {str(out / "T.zarr"): oc.open(data / "A.npy").mT}
            told = forecast(targets)
            assert run(targets) == told, f"{threads} threads"
        assert told["bytes_read"] <= expected.nbytes + PAGES
        np.testing.assert_array_equal(load(out / "T.zarr"), swapped)


def test_a_part_of_the_rows_is_read_as_it_is(data: Path, out: Path) -> None:
    expected = made("f8")
    np.save(data / "A.npy", expected)
    with session(pool_limit=100 << 20):
        part = oc.open(data / "A.npy")[5:, 4000:9000]
        found: Any = oc.compute(part.T)
    np.testing.assert_array_equal(found, expected[5:, 4000:9000].T)


def test_every_read_may_fail(data: Path, out: Path) -> None:
    expected = made("f8")
    np.save(data / "A.npy", expected)
    with session(pool_limit=100 << 20) as current:
        run({str(out / "whole.zarr"): oc.open(data / "A.npy").T})
        reads = current.counters()["read_calls"]
    assert reads > 1
    array = oc.open(data / "A.npy")  # outside of the sessions, whose faults would meet the reading of its header
    for n in range(1, reads + 1):
        target = out / f"T{n}.zarr"
        with session(pool_limit=100 << 20, faults=f"read:{n}") as current:
            targets = {str(target): array.T}
            with pytest.raises(OutcoreError, match=r"A\.npy") as raised:
                run(targets)
            assert raised.value.code == "io"
            assert_nothing_but_kept(current)
            assert not target.exists()
            run(targets)
        np.testing.assert_array_equal(load(target), expected.T)
