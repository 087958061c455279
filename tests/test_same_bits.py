"""A result depends on what is computed and its tiles only: not on threads, memory or policy, to the last bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import workloads
from support.running import POLICIES, load, run, session

import outcore as oc
from outcore.errors import MemoryLimitError

SHARES = (1 / 8, 1 / 4, 1 / 2, 2)
MAKERS = (workloads.nmf, workloads.reductions, workloads.product)


def bits(work: workloads.Workload, out: Path, **options: Any) -> dict[str, bytes]:
    """The results' bytes by name; a pool that is refused gives way to the smallest that works."""
    try:
        with session(**options):
            run(work.targets(out))
    except MemoryLimitError as error:
        with session(**options | {"pool_limit": error.smallest}):
            run(work.targets(out))
    return {path.name: load(path).tobytes() for path in sorted(out.iterdir())}


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_threads_and_memory_change_nothing(make: Any, data: Path, out: Path) -> None:
    work = make(data, 12)
    reference = bits(work, out)
    for threads in (1, 2, 3, 4):
        for share in SHARES:
            found = bits(work, out, threads=threads, pool_limit=int(work.data_bytes * share))
            assert found == reference, f"{threads} threads, {share} of the data"


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_policies_change_nothing(make: Any, data: Path, out: Path) -> None:
    work = make(data, 12)
    reference = bits(work, out)
    for policy in POLICIES:
        for share in SHARES:
            found = bits(work, out, policy=policy, pool_limit=int(work.data_bytes * share))
            assert found == reference, f"{policy}, {share} of the data"


@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_numpy_agrees(make: Any, data: Path, out: Path) -> None:
    work = make(data)
    with session():
        run(work.targets(out))
    for name, value in work.expected().items():
        found = load(out / name)
        assert found.dtype == np.asarray(value).dtype
        # A column's sum may come near zero, so its error is measured against what was added.
        scale = np.max(np.abs(value))
        np.testing.assert_allclose(found, value, rtol=1e-12, atol=1e-12 * scale, err_msg=name)


@pytest.mark.parametrize("kind", ["uniform", "normal"])
def test_random_numbers_do_not_depend_on_memory_or_threads(kind: str) -> None:
    values = []
    for threads, pool in ((1, 16 << 20), (2, 64 << 20), (4, 256 << 20)):
        with session(threads=threads, pool_limit=pool):
            x = getattr(oc.random, kind)((1_000_003,), seed=11)
            values.append((oc.compute(x[17:999_999:13]).tobytes(), oc.compute(x.sum()).tobytes()))
    assert len(set(values)) == 1
