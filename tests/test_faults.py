"""Every call can fail: for four programs the n-th read, write, sync, rename and reservation fail, for every n.

Each time: a clear error with code, path and cause; no hang; the ledger back at zero; nothing under the final name; and
the same session's next run succeeds with the right answer.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import workloads
from support.running import assert_nothing_but_kept, files_below, load, run, session
from support.sizes import Sweep, alternating

import outcore as oc
from outcore.errors import MemoryLimitError, OutcoreError

# Far more calls than these programs make: a fault that never stops firing is a bug of its own.
CALLS_MAX = 3000
MEBIBYTES = 12
MAKERS: tuple[Callable[..., workloads.Workload], ...] = (
    workloads.nmf,
    workloads.product,
    workloads.transpose,
    workloads.gram_of_sum,
)
FAULTS = {
    "read:{n}": ("io", "Input/output error"),
    "write:{n}": ("io", "Input/output error"),
    "write:{n}:enospc": ("space", "No space left on device"),
    "torn-write:{n}": ("io", "Input/output error"),
    "sync:{n}": ("io", "Input/output error"),
    "rename:{n}": ("io", "Input/output error"),
    "reserve:{n}": ("memory", ""),
}


def smallest_pool(work: workloads.Workload, out: Path, scratch: Path) -> int:
    """A pool so small that temporaries spill: more calls, more places to fail."""
    with session(scratch, pool_limit=64 << 10), pytest.raises(MemoryLimitError) as refused:
        run(work.targets(out))
    assert refused.value.smallest is not None
    return refused.value.smallest


def outcome_of(work: workloads.Workload, out: Path, scratch: Path, options: dict[str, Any]) -> OutcoreError | None:
    """Runs with a fault; when it fires, checks what must hold and that the same session can go on."""
    with session(scratch, **options) as current:
        try:
            run(work.targets(out))
        except OutcoreError as error:
            assert_nothing_but_kept(current)
            assert files_below(out) == []
            run(work.targets(out))
            return error
    return None


def check_answer(work: workloads.Workload, out: Path, expected: dict[str, Any]) -> None:
    for name, value in expected.items():
        np.testing.assert_allclose(load(out / name), value, rtol=1e-12, err_msg=name)


def clear(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


def makers_and_faults(makers: Sequence[Any]) -> list[tuple[Any, str]]:
    """Reads, writes and reservations of each program; in turn one of the other faults, which are alike in all."""
    common = ["read:{n}", "write:{n}", "reserve:{n}"]
    rare = alternating(makers, [fault for fault in FAULTS if fault not in common])
    return [*itertools.product(makers, common), *rare]


@pytest.mark.parametrize(
    ("make", "fault"), makers_and_faults(MAKERS), ids=lambda value: getattr(value, "__name__", value)
)
def test_the_nth_call_fails_for_every_n(make: Any, fault: str, data: Path, out: Path, scratch: Path) -> None:
    work = make(data, MEBIBYTES)
    pool = smallest_pool(work, out, scratch)
    expected = work.expected()
    code, cause = FAULTS[fault]
    sweep = Sweep(fault, CALLS_MAX)
    for n in sweep:
        clear(out)
        error = outcome_of(work, out, scratch, {"pool_limit": pool, "faults": fault.format(n=n)})
        if error is None:
            continue
        sweep.failed()
        assert error.code == code, str(error)
        assert cause in str(error)
        assert "\n" not in str(error)
        if code == "io":
            named = [str(work.paths[name]) for name in work.paths] + [str(out), str(scratch)]
            assert any(path in str(error) for path in named), str(error)
    check_answer(work, out, expected)
    assert files_below(scratch) == []


@pytest.mark.parametrize("fault", ["short-read:{n}", "short-write:{n}"])
@pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)
def test_a_short_transfer_goes_on_where_it_stopped(make: Any, fault: str, data: Path, out: Path, scratch: Path) -> None:
    work = make(data, MEBIBYTES)
    expected = work.expected()
    for n in (1, 2, 5):
        with session(scratch, faults=fault.format(n=n)) as current:
            run(work.targets(out))
            current.clear()
            assert_nothing_but_kept(current)
        check_answer(work, out, expected)


def test_a_source_that_shrinks_after_opening_is_named(data: Path, out: Path, scratch: Path) -> None:
    work = workloads.transpose(data, MEBIBYTES)
    with session(scratch) as current:
        targets = work.targets(out)
        path = work.paths["A"]
        with path.open("r+b") as file:
            file.truncate(path.stat().st_size // 2)
        with pytest.raises(OutcoreError, match=path.name) as failed:
            run(targets)
        assert failed.value.code in ("changed", "format", "io")
        assert_nothing_but_kept(current)
    assert files_below(out) == []


def test_a_source_that_changes_between_runs_is_never_served_from_memory(data: Path, out: Path, scratch: Path) -> None:
    work = workloads.transpose(data, MEBIBYTES)
    with session(scratch):
        run(work.targets(out))
        new = np.load(work.paths["A"]) + 1
        np.save(work.paths["A"], new)
        run(work.targets(out))
    assert np.array_equal(load(out / "T.zarr"), new.T)


def test_scratch_quota_is_refused_before_it_is_overrun(data: Path, out: Path, scratch: Path) -> None:
    work = workloads.nmf(data, 16)
    # Without rewriting, the N×100 temporary W @ H must spill at this pool.
    options: dict[str, Any] = {"pool_limit": 8 << 20, "rewrites": {"all": False}, "policy": "clean-first-lru"}
    with session(scratch, **options):
        assert oc.explain(work.targets(out)).bytes_spilled > 4096
    with session(scratch, scratch_quota=4096, **options), pytest.raises(OutcoreError) as refused:
        run(work.targets(out))
    assert refused.value.code == "quota"
    assert files_below(out) == []
