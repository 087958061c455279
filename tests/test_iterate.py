"""`iterate`: each step one planned program, bytes as those of the unrolled program, memory flat however long."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from support.running import files_below, session

import outcore as oc
from outcore.errors import ArgumentError, DTypeError, MemoryLimitError, ShapeError

MIB = 1 << 20
ROWS, COLUMNS, FACTORS = 250_000, 100, 10
STEPS = 4
State = tuple[oc.Array, ...]


@pytest.fixture(scope="module")
def stored(shared: Path) -> Path:
    """A matrix of some 190 MiB."""
    path = shared / "X.npy"
    np.save(path, np.random.default_rng(0).random((ROWS, COLUMNS)))
    return path


def nmf(x: oc.Array) -> Callable[..., State]:
    def step(w: oc.Array, h: oc.Array) -> State:
        w = w * (x @ h.T) / (w @ h @ h.T)
        return w, h * (w.T @ x) / (w.T @ w @ h)

    return step


def kmeans(x: oc.Array) -> Callable[..., State]:
    """Lloyd's algorithm."""

    def step(centres: oc.Array) -> State:
        distances = (centres * centres).sum(axis=1)[None, :] - 2 * (x @ centres.T)
        nearest = oc.argmin(distances, axis=1)
        member = (nearest[:, None] == oc.arange(centres.shape[0])[None, :]).astype("float64")
        return ((member.T @ x) / oc.maximum(member.sum(axis=0), 1.0)[:, None],)

    return step


def start(make: Any) -> State:
    random = np.random.default_rng(1)
    if make is kmeans:
        return (oc.asarray(random.random((FACTORS, COLUMNS))),)
    return oc.asarray(random.random((ROWS, FACTORS)) + 0.1), oc.asarray(random.random((FACTORS, COLUMNS)) + 0.1)


def unrolled(make: Any, x: oc.Array) -> tuple[Any, ...]:
    state = start(make)
    for _ in range(STEPS):
        state = make(x)(*state)
    values = oc.compute(*state)
    return values if isinstance(values, tuple) else (values,)


def iterated(make: Any, x: oc.Array) -> tuple[Any, ...]:
    return tuple(array.compute() for array in oc.iterate(make(x), start(make), max_iter=STEPS))


def plain(make: Any, x: oc.Array) -> tuple[Any, ...]:
    state = start(make)
    for _ in range(STEPS):
        found = oc.persist(*make(x)(*state))
        state = found if isinstance(found, tuple) else (found,)
    return tuple(array.compute() for array in state)


def asked(make: Any, x: oc.Array) -> tuple[Any, ...]:
    """Lazy all the way; a scalar is asked for in every step."""
    state = start(make)
    for _ in range(STEPS):
        state = make(x)(*state)
        float(state[-1].sum())
    return tuple(array.compute() for array in state)


@pytest.mark.parametrize("make", [kmeans, nmf], ids=lambda make: make.__name__)
@pytest.mark.parametrize("share", [0.5, 0.9])
def test_loops_read_what_the_unrolled_program_reads(make: Any, share: float, stored: Path) -> None:
    counted, values = {}, {}
    for run in (unrolled, iterated, plain, asked):
        with session(pool_limit=int(share * stored.stat().st_size)) as current:
            values[run.__name__] = run(make, oc.open(stored))
            counted[run.__name__] = current.counters()["bytes_read"]
    for name, found in values.items():
        for left, right in zip(found, values["unrolled"], strict=True):
            np.testing.assert_array_equal(left, right, name)
    for name in ("iterated", "plain"):
        assert counted[name] <= 1.01 * counted["unrolled"], counted


def newton(x: oc.Array) -> oc.Array:
    return (x + 2 / x) / 2


def test_a_condition_ends_the_loop_without_a_sweep_of_its_own(stored: Path) -> None:
    x_stored = oc.open(stored)

    def descend(mean: oc.Array) -> tuple[oc.Array, dict[str, oc.Array]]:
        error = x_stored - mean
        return mean + 0.5 * error.mean(axis=0), {"loss": (error * error).sum()}

    with session(pool_limit=24 * MIB) as current:
        before = current.counters()["bytes_read"]
        found = oc.iterate(
            descend,
            oc.zeros((COLUMNS,)),
            until=lambda old, new, _: oc.max(oc.abs(new - old)) < 1e-3,
            max_iter=100,
        )
        counted = current.counters()["bytes_read"] - before
    assert found.converged
    assert found.iterations == 9
    assert found.history["loss"].shape == (9,)
    assert np.all(np.diff(found.history["loss"]) < 0)
    assert counted == sum(outcome.bytes_read for outcome in found.outcomes) <= 9 * stored.stat().st_size
    with session():
        np.testing.assert_allclose(found.state.compute(), np.load(stored).mean(axis=0), atol=2e-3)


def test_states_and_steps_of_every_form() -> None:
    with session():
        one = oc.iterate(newton, oc.ones(()), max_iter=6)
        assert float(one.state) == float(one[0]) == pytest.approx(2**0.5)
        assert (one.iterations, one.converged, one.history) == (6, False, {})
        pair = (oc.ones((3,)), oc.zeros((2,)))
        a, b = oc.iterate(lambda x, y: (x + 1, y - 1), pair, max_iter=3)
        assert a.compute().tolist() == [4.0] * 3
        assert b.compute().tolist() == [-3.0] * 2
        a, b = oc.iterate(lambda state: (state[0] * 2, state[1]), pair, max_iter=3)
        assert a.compute().tolist() == [8.0] * 3
        found = oc.iterate(lambda x, y: (x, y + 1, {"sum": y.sum()}), pair, max_iter=2)
        assert found.history["sum"].tolist() == [0.0, 2.0]
        stopped = oc.iterate(lambda x: x + 1, oc.zeros(()), until=lambda old, new, k: k == 4, max_iter=9)
        assert (stopped.iterations, float(stopped.state)) == (4, 4.0)


def test_what_is_no_loop_is_said_in_one_line() -> None:
    with session():
        x = oc.ones((3,))
        with pytest.raises(ShapeError, match=r"shapes \(3,\) and \(2,\) differ"):
            oc.iterate(lambda x: x[1:], x, max_iter=2)
        with pytest.raises(DTypeError, match="types float64 and float32 differ"):
            oc.iterate(lambda x: x.astype("float32"), x, max_iter=2)
        with pytest.raises(ShapeError, match="returned 2 arrays, and the state has 1"):
            oc.iterate(lambda x: (x, x), x, max_iter=2)
        with pytest.raises(ShapeError, match="loss has shape"):
            oc.iterate(lambda x: (x, {"loss": x}), x, max_iter=2)
        with pytest.raises(ArgumentError, match=r"until takes \(old, new, iteration\), and not \(old, new\)"):
            oc.iterate(lambda x: x, oc.ones(()), until=lambda old, new: True, max_iter=1)
        with pytest.raises(ArgumentError, match="max_iter=0"):
            oc.iterate(newton, x, max_iter=0)


def test_a_state_larger_than_memory_goes_to_scratch(stored: Path, scratch: Path) -> None:
    x = np.load(stored)
    with session(scratch, pool_limit=24 * MIB):
        found = oc.iterate(lambda x: x * 0.5 + 1, oc.open(stored), max_iter=4)
        assert len(files_below(scratch)) == 1, "only the last state"
        total = float(found.state.sum())
        with pytest.raises(MemoryLimitError):
            found.state.compute()
    for _ in range(4):
        x = x * 0.5 + 1
    np.testing.assert_allclose(total, x.sum(), rtol=1e-12)


def test_long_loops_hold_memory_flat_and_plan_in_little_time(data: Path) -> None:
    np.save(data / "X.npy", np.random.default_rng(0).random((2000, 50)))
    used, resident = [], []
    with session(pool_limit=32 * MIB) as current:
        x = oc.open(data / "X.npy")

        def step(w: oc.Array) -> tuple[oc.Array, dict[str, oc.Array]]:
            used.append(current.counters()["reserved_bytes"])
            resident.append(oc._core.rss()["current"])
            error = x @ w - 1
            return w - 1e-5 * (x.T @ error), {"loss": (error * error).sum()}

        found = oc.iterate(step, oc.zeros((50, 1)), max_iter=1000)
    assert found.history["loss"][-1] < found.history["loss"][0]
    assert max(used[500:]) <= max(used[20:500]) + MIB
    assert max(resident[900:]) <= max(resident[100:200]) + 8 * MIB
    assert found.plan_seconds / found.iterations < 0.1


def test_what_a_step_hands_on_outlives_the_checkpoint_it_was_restored_from(tmp_path: Path) -> None:
    np.save(tmp_path / "w.npy", np.ones((2048, 1024)))
    steps = 0

    def step(w: oc.Array, x: oc.Array) -> Any:
        return w, x + oc.sum(w)

    def run(until: Callable[..., Any] | None) -> Any:
        with session(tmp_path / "scratch", pool_limit=24 << 20):
            start = (oc.open(tmp_path / "w.npy"), oc.zeros(3))
            loop = oc.iterate(step, start, until=until, max_iter=6, checkpoint=1)
            return loop.state[1].compute()

    def stop(*_: Any) -> None:
        nonlocal steps
        steps += 1
        if steps == 4:
            raise KeyboardInterrupt

    (tmp_path / "scratch").mkdir()
    with pytest.raises(KeyboardInterrupt):
        run(stop)
    assert run(lambda old, new, k: k > 99).tolist() == [6.0 * 2048 * 1024] * 3


# A loop that works on arrays of a library and of memory, and is killed before its step of some number.
FOREIGN = """
import os, signal, sys
import h5py
import numpy as np
import outcore as oc

path, scratch, kill = sys.argv[1], sys.argv[2], int(sys.argv[3])
steps = 0

def step(v):
    global steps
    steps += 1
    if steps == kill:
        os.kill(os.getpid(), signal.SIGKILL)
    return v / 2 + oc.asarray(data) + shift

with oc.Session(memory_limit=8 << 30, scratch=[scratch], progress=False), h5py.File(path) as file:
    data, shift = file["x"], np.arange(30.0)
    loop = oc.iterate(step, oc.asarray(file["start"]), max_iter=8, checkpoint=1)
    print(steps, repr(np.asarray(loop.state).tobytes().hex()))
"""


def test_a_loop_over_arrays_of_one_process_goes_on_in_another(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        random = np.random.default_rng(0)
        file["x"], file["start"] = random.random((40, 30)), random.random((40, 30))

    def run(scratch: str, kill: int) -> tuple[int, str]:
        (tmp_path / scratch).mkdir(exist_ok=True)
        command = [sys.executable, "-c", FOREIGN, str(tmp_path / "x.h5"), str(tmp_path / scratch), str(kill)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode in (0, -9), done.stderr
        return done.returncode, done.stdout

    _, whole = run("a", 99)
    assert run("b", 6) == (-9, "")
    code, rest = run("b", 99)
    assert code == 0
    assert whole.split()[0] == "8"
    assert rest.split()[0] == "4"  # that by which the loop is known, and steps 6, 7 and 8
    assert rest.split()[1] == whole.split()[1]
    assert not list((tmp_path / "b").glob("outcore-resume-*"))
    # Other values are another loop.
    assert run("b", 6)[0] == -9
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["x"][3, 3] += 1
    assert run("b", 99)[1].split()[0] == "8"


def test_steps_that_compute_on_their_way_are_told_apart(tmp_path: Path) -> None:
    def run(factor: float, most: int) -> Any:
        steps = 0

        def step(v: oc.Array) -> oc.Array:
            nonlocal steps
            steps += 1
            if steps > most:
                raise KeyboardInterrupt
            return oc.asarray((v * factor).compute())

        return oc.iterate(step, oc.ones(3), max_iter=5, checkpoint=1).state.compute().tolist(), steps

    with session(tmp_path):
        with pytest.raises(KeyboardInterrupt):
            run(2.0, 3)
        assert run(3.0, 99) == ([243.0] * 3, 5)
        values, steps = run(2.0, 99)
    assert values == [32.0] * 3
    assert steps < 5


def killed_and_again(folder: Path, first: Any, second: Any, start: Any, **options: Any) -> Any:
    """The state that a loop comes to after another one was killed at its fourth step."""
    calls = 0

    def stopping(*state: oc.Array) -> Any:
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return first(*state)

    with session(folder):
        with pytest.raises(KeyboardInterrupt):
            oc.iterate(stopping, start, max_iter=6, checkpoint=1)
        return oc.iterate(second, start, **{"max_iter": 6, "checkpoint": 1} | options).state.compute().tolist()


def test_loops_of_other_values_are_other_loops(tmp_path: Path) -> None:
    a, b = np.arange(12.0), np.array([-1, -2])
    wide = killed_and_again(
        tmp_path,
        lambda v: v + oc.asarray(a.reshape(2, 6))[1, 0],
        lambda v: v + oc.asarray(a.reshape(4, 3))[1, 0],
        np.zeros(4),
    )
    assert wide == [18.0] * 4
    unsigned = killed_and_again(
        tmp_path,
        lambda v: v + oc.asarray(b).astype("f8").sum(),
        lambda v: v + oc.asarray(b.view("u8")).astype("f8").sum(),
        np.zeros(2),
    )
    assert unsigned == [6 * float(b.view("u8").astype("f8").sum())] * 2
    numbers = killed_and_again(
        tmp_path,
        lambda v: v + int(v.max().compute()),
        lambda v: v + int(v.max().compute()) ** 2,
        np.full(2, 2),
        max_iter=3,
    )
    assert numbers == [42 + 42**2] * 2  # 2, 6, 42, 1806


def test_a_state_that_functions_of_python_made_is_known_by_its_values(tmp_path: Path) -> None:
    calls = 0

    def run(shift: float, most: int) -> Any:
        start = oc.map_blocks(lambda block: block + shift, oc.zeros(3), dtype="float64")

        def step(v: oc.Array) -> oc.Array:
            nonlocal calls
            calls += 1
            if calls == most:
                raise KeyboardInterrupt
            return v + 1

        return oc.iterate(step, start, max_iter=6, checkpoint=1).state.compute().tolist()

    with session(tmp_path):
        with pytest.raises(KeyboardInterrupt):
            run(1.0, 4)
        calls = 0
        assert run(2.0, 99) == [8.0] * 3
        assert calls == 6
        calls = 0
        assert run(1.0, 99) == [7.0] * 3
        assert calls == 4


def test_a_step_is_called_once_for_each_step_and_sees_the_state(tmp_path: Path) -> None:
    calls = []

    def step(v: oc.Array) -> oc.Array:
        calls.append(100 // int(v.min().compute()))
        return v + len(calls)

    with session(tmp_path):
        assert oc.iterate(step, np.full(2, 5), max_iter=3, checkpoint=1).state.compute().tolist() == [11, 11]
    assert calls == [20, 16, 12]


def test_a_state_of_more_steps_than_are_asked_for_is_not_given(tmp_path: Path) -> None:
    assert killed_and_again(tmp_path, lambda v: v + 1, lambda v: v + 1, np.zeros(1), max_iter=1) == [1.0]


def test_histories_of_complex_numbers_are_stored(tmp_path: Path) -> None:
    def step(v: oc.Array) -> Any:
        return v * 1j, {"s": v.sum()}

    calls = 0

    def stopping(v: oc.Array) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return step(v)

    with session(tmp_path):
        with pytest.raises(KeyboardInterrupt):
            oc.iterate(stopping, np.ones(2, np.complex128), max_iter=3, checkpoint=1)
        loop = oc.iterate(step, np.ones(2, np.complex128), max_iter=3, checkpoint=1)
    assert loop.history["s"].tolist() == [2, 2j, -2]


def test_steps_that_no_other_process_can_recognize_are_refused(tmp_path: Path) -> None:
    def step(v: oc.Array) -> oc.Array:
        return oc.map_blocks(lambda block: block + 1, v, dtype="float64")

    with session(tmp_path), pytest.raises(ArgumentError, match="function of this process"):
        oc.iterate(step, oc.zeros(3), max_iter=3, checkpoint=1)
    assert files_below(tmp_path) == []
    with session(tmp_path):
        assert oc.iterate(step, oc.zeros(3), max_iter=3).state.compute().tolist() == [3.0, 3.0, 3.0]


def test_functions_of_arrays_take_a_loop_over_one_state(tmp_path: Path) -> None:
    loop = oc.iterate(lambda x: x + 1, oc.zeros(3), max_iter=2)
    oc.store({tmp_path / "x.npy": loop})
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), [2, 2, 2])
    assert float(oc.sum(loop).compute()) == 6
    pair = oc.iterate(lambda x, y: (y, x), (oc.zeros(3), oc.ones(3)), max_iter=1)
    with pytest.raises(ArgumentError, match="2 arrays; use loop"):
        oc.sum(pair)
