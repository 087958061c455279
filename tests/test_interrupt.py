"""Ctrl-C stops within a second and leaves nothing."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import workloads
from support.killing import start, wait
from support.running import assert_nothing_but_kept, files_below, run, session, tree_hash

import outcore as oc

# Twenty iterations over 64 MiB take longer than any of the moments below, on any machine.
CASES: dict[str, dict[str, Any]] = {
    "computing": {"threads": 1},
    "spilling": {"rewrites": {"all": False}, "policy": "clean-first-lru", "pool_limit": 12 << 20},
}
WITHIN_SECONDS = 1.0


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("moment", [0.0, 0.05, 0.2])
def test_sigint_stops_within_a_second(case: str, moment: float, data: Path, out: Path, scratch: Path) -> None:
    work = workloads.nmf(data, 64, iterations=20)
    inputs = tree_hash(data)
    child = start(work, out, scratch, **CASES[case])
    assert not wait(child, moment), "the program is too short to be interrupted"
    sent = time.perf_counter()
    child.send_signal(signal.SIGINT)
    stopped = wait(child, 20)
    took = time.perf_counter() - sent
    _, said = child.communicate()
    assert stopped
    assert child.returncode != 0
    assert "KeyboardInterrupt" in said or "Cancelled" in said, said
    assert took <= WITHIN_SECONDS
    assert files_below(out) == []
    assert files_below(scratch) == []
    assert tree_hash(data) == inputs


def test_a_store_of_many_chunks_is_left_without_a_name(out: Path, scratch: Path) -> None:
    """Removing thousands of files may go on behind the caller, who has the name for another attempt at once."""
    target = out / "y.zarr"

    def interrupt(*report: Any) -> None:
        if report[2] >= 1500:
            raise KeyboardInterrupt

    with session(scratch) as current:
        x = oc.random.uniform((2000, 64), seed=1)
        plan = {"path": str(target), "overwrite": False, "chunks": [1, 64]}
        with pytest.raises(KeyboardInterrupt):
            current.plan([x._expr], [plan]).run(interrupt, None)
        assert not target.exists()
        oc.store({target: x[:20]}, chunks={target: (1, 64)})
        np.testing.assert_array_equal(oc.open(target).compute(), x[:20].compute())
    assert [path.name for path in out.iterdir() if not path.name.startswith(".")] == ["y.zarr"]


def test_the_session_goes_on_after_an_interrupt(data: Path, out: Path, scratch: Path) -> None:
    """Within one process: an alarm's handler raises KeyboardInterrupt as the terminal's would."""
    work = workloads.nmf(data, 64, iterations=20)
    with session(scratch) as current:
        targets = work.targets(out)
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        try:
            with pytest.raises((KeyboardInterrupt, Exception)) as stopped:
                run(targets)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert stopped.type.__name__ in ("KeyboardInterrupt", "Cancelled")
        assert_nothing_but_kept(current)
        assert files_below(out) == []
        short = workloads.nmf(data, 2, iterations=1)
        run(short.targets(out))
    assert files_below(out) != []
