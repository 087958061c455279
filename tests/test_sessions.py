"""Sessions share the process: its memory limit, its turns; one that is closed or inherited says so."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import cgroup, data
from support.running import files_below, session

import outcore as oc
from outcore._base.sizes import format_size, parse_size
from outcore.errors import SessionError

LIMIT = 512 << 20
COLUMNS = 100
DATA_BYTES = 600 << 20


@pytest.fixture(scope="module")
def x(shared: Path) -> str:
    """A matrix larger than either limit."""
    return str(data.write_npy(shared / "X.npy", (DATA_BYTES // 8 // COLUMNS, COLUMNS), 0))


def child(function: str, **arguments: Any) -> cgroup.Outcome:
    outcome = cgroup.run_limited(f"support.children:{function}", arguments, timeout_seconds=120)
    assert outcome.reason is None, outcome.stderr
    return outcome


@pytest.mark.parametrize("limits", [(LIMIT, LIMIT), (LIMIT, LIMIT // 2)])
def test_sessions_in_turn_stay_within_the_larger_limit(limits: tuple[int, int], x: str, out: Path) -> None:
    outcome = child("sessions_in_turn", x=x, out=str(out), limits=limits)
    runs, freed = outcome.value["runs"], outcome.value["freed"]
    assert all(run["same"] for run in runs), "the forecast is the outcome"
    assert max(run["kept"] for run in runs) > LIMIT // 2, "the programs do not fill their memory"
    assert all(run["rss"] <= limit for run, limit in zip(runs, limits * 2, strict=True))
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT
    assert freed >= 0.9 * runs[-1]["kept"], "a session that closes gives its memory back"


def test_sessions_at_once_stay_within_the_limit(x: str) -> None:
    outcome = child("sessions_at_once", x=x, limits=[LIMIT] * 3, rounds=3)
    assert len(set(outcome.value)) == 1
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT


def test_a_refusal_names_what_other_sessions_hold(x: str) -> None:
    rows = (240 << 20) // 8 // COLUMNS
    outcome = child("result_beside", x=x, rows=rows, memory_limit=LIMIT)
    told = outcome.value
    assert f"{format_size(told['held'])} are held by results of other sessions" in told["said"]
    assert told["smallest"] > LIMIT
    assert told["right"] == pytest.approx(2 * rows * COLUMNS)
    assert outcome.peak_rss_bytes is not None
    assert outcome.peak_rss_bytes <= LIMIT


def test_the_smallest_limit_named_counts_other_sessions() -> None:
    lazy = oc.ones((1024, 1024)) * 2

    def refused() -> tuple[int, int]:
        """Bytes that are said to be held by results of other sessions, and the limit that would do."""
        with session(memory_limit=1), pytest.raises(oc.errors.MemoryLimitError) as caught:
            oc.explain(lazy + 1)
        said = re.search(r"([\d.]+ [KM]?i?B) are held by results of other sessions", str(caught.value))
        assert caught.value.smallest is not None
        return (parse_size(said[1]) if said else 0), caught.value.smallest

    # Tests before this one may have left results, and nothing may take them away between the two calls.
    gc.collect()
    with session(pool_limit=1 << 30):
        before, _ = refused()
        kept = oc.compute(lazy)
        after, smallest = refused()
    assert kept.nbytes % 4096 == 0, "whole pages"
    assert after - before == pytest.approx(kept.nbytes, rel=0.02)
    assert smallest > after


@pytest.mark.parametrize("leave", ["close", "with"])
def test_a_closed_session_computes_nothing(leave: str, tmp_path: Path, scratch: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(10.0))
    made = oc.Session(scratch=[str(scratch)], progress=False)
    with made:
        lazy = oc.open(tmp_path / "x.npy") + 1
        program = made.plan([lazy._expr], [None])
        if leave == "close":
            made.close()
            with pytest.raises(SessionError, match="the session is closed"):
                oc.compute(lazy)
    with made:
        for call in (oc.compute, oc.explain):
            with pytest.raises(SessionError, match="the session is closed"):
                call(lazy)
    with pytest.raises(SessionError, match="the session is closed"):
        made.run(program)
    assert files_below(scratch) == []
    with session():
        np.testing.assert_array_equal(oc.compute(lazy), np.arange(10.0) + 1)


def in_a_fork(function: Callable[[], Any]) -> str:
    """What a forked child has to say, in one line."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            said = str(function())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writer, said.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        said = answer.read()
    os.waitpid(process, 0)
    return said


def test_a_forked_child_computes_in_a_session_of_its_own(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.arange(1e6))
    lazy = oc.open(tmp_path / "x.npy")
    with oc.config.set(memory_limit="2GiB", progress=False):
        expected = float(oc.compute(lazy.sum()))
        assert in_a_fork(lambda: float(oc.compute(lazy.sum()))) == str(expected)
        assert in_a_fork(lambda: in_a_fork(lambda: float(oc.compute(lazy.sum())))) == str(expected)
        assert float(oc.compute(lazy.sum())) == expected


def test_a_child_forked_while_another_thread_computes_is_not_stuck() -> None:
    """Locks of the parent are none of the child's."""
    inside, go_on = threading.Event(), threading.Event()

    def wait(block: Any) -> Any:
        inside.set()
        go_on.wait()
        return block

    with oc.config.set(memory_limit="2GiB", progress=False):
        busy = threading.Thread(target=lambda: oc.compute(oc.map_blocks(wait, oc.zeros((10,)), dtype="float64")))
        busy.start()
        inside.wait()
        try:
            assert in_a_fork(lambda: float(oc.compute(oc.ones((10,)).sum()))) == "10.0"
        finally:
            go_on.set()
            busy.join()


def test_an_entered_session_is_refused_in_a_forked_child() -> None:
    with session():
        assert in_a_fork(lambda: oc.compute(oc.ones((3,)))).startswith("SessionError: this session belongs to")


def test_programs_of_different_sessions_take_turns() -> None:
    """A second program starts only when the first is over, whatever session it belongs to."""
    inside, go_on = threading.Event(), threading.Event()
    order: list[str] = []

    def slow(block: Any) -> Any:
        inside.set()
        go_on.wait()
        order.append("first")
        return block

    def quick(block: Any) -> Any:
        order.append("second")
        return block

    def work(function: Callable[[Any], Any]) -> None:
        with session(threads=1):
            oc.compute(oc.map_blocks(function, oc.zeros((10,)), dtype="float64"))

    first, second = (threading.Thread(target=work, args=(function,)) for function in (slow, quick))
    first.start()
    inside.wait()
    second.start()
    second.join(0.2)
    go_on.set()
    first.join()
    second.join()
    assert order == ["first", "second"]


def test_a_signal_is_seen_while_a_program_is_planned() -> None:
    outcome = child("long_plan")
    assert outcome.value == "interrupted"
    assert outcome.wall_seconds < 20


def test_iteration_holds_one_small_block_at_a_time(tmp_path: Path) -> None:
    data = np.random.default_rng(0).random(2_000_000)
    np.save(tmp_path / "x.npy", data)
    with oc.Session(memory_limit="4GiB", progress=False) as session:
        x = oc.open(tmp_path / "x.npy")

        def held() -> int:
            counted = session.counters()
            return int(counted["reserved_bytes"] - counted["kept_bytes"])

        values = iter(x)
        assert next(values) == data[0]
        assert held() <= 5 << 20
        assert all(value == other for value, other in zip(values, data[1:], strict=True))
        del values
        assert held() == 0
        np.testing.assert_array_equal(x[:5].to_numpy(), data[:5])


def test_iteration_runs_stages_once(tmp_path: Path) -> None:
    data = np.random.default_rng(0).random(1_200_000)
    np.save(tmp_path / "x.npy", data)
    with oc.Session(memory_limit="4GiB", progress=False), oc.profile() as seen:
        assert list(oc.sort(oc.open(tmp_path / "x.npy"))) == sorted(data.tolist())
    assert seen.bytes_read <= 4 * data.nbytes


@pytest.mark.parametrize("end", ["", "import sys; sys.exit(3)", "raise ValueError"])
def test_scratch_goes_with_the_process(tmp_path: Path, end: str) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    code = f"""
import numpy as np, outcore as oc
oc.config.set(memory_limit="600MiB", scratch=[{str(scratch)!r}], progress=False)
held = oc.argsort(oc.asarray(np.random.default_rng(0).random(3_000_000)))
held[:3].compute()
{end}
"""
    subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)
    assert list(scratch.iterdir()) == []
