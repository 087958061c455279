"""What stays in memory between programs: tiles that nobody's need drives out, and values that were computed anyway."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import files_below, session

import outcore as oc
from outcore.errors import FunctionError, SourceChangedError

SIDE = 1800
MIB = 1 << 20


@pytest.fixture
def stored(data: Path) -> Path:
    """A matrix of some 25 MiB, of norm below one."""
    np.save(data / "A.npy", np.random.default_rng(0).random((SIDE, SIDE)) / SIDE)
    return data / "A.npy"


def read(current: Any) -> int:
    return int(current.counters()["bytes_read"])


def small_computes() -> None:
    for number in range(3):
        oc.compute((oc.ones((1000,)) * number).sum())
        oc.compute(oc.ones((200, 200)) @ oc.ones((200, 200)))


def size(path: Path) -> int:
    return path.stat().st_size


def norm(r: oc.Array) -> oc.Array:
    return oc.sqrt((r * r).sum())


def richardson(a: oc.Array, steps: int, current: Any) -> tuple[list[int], list[float]]:
    """Bytes read and residual norms, step by step."""
    b, x = oc.ones((SIDE, 1)), oc.zeros((SIDE, 1))
    counted, norms = [], []
    for _ in range(steps):
        before = read(current)
        r = b - a @ x
        norms.append(float(norm(r)))
        x = x + 0.2 * r
        small_computes()
        counted.append(read(current) - before)
    return counted, norms


def expected_norms(path: Path, steps: int) -> list[float]:
    a, b, x = np.load(path), np.ones((SIDE, 1)), np.zeros((SIDE, 1))
    norms = []
    for _ in range(steps):
        r = b - a @ x
        norms.append(float(np.linalg.norm(r)))
        x = x + 0.2 * r
    return norms


def test_a_loop_reads_a_matrix_that_fits_once_in_all(stored: Path) -> None:
    with session(pool_limit=96 * MIB) as current:
        counted, norms = richardson(oc.open(stored), 8, current)
    assert sum(counted) <= 1.01 * size(stored)
    np.testing.assert_allclose(norms, expected_norms(stored, 8), rtol=1e-12)


def test_a_loop_reads_a_matrix_that_does_not_fit_once_per_step_at_most(stored: Path) -> None:
    with session(pool_limit=14 * MIB) as current:
        counted, norms = richardson(oc.open(stored), 8, current)
    assert counted[0] <= 1.01 * size(stored)
    assert max(counted[1:]) <= counted[0]
    assert max(counted[2:]) < 0.95 * counted[0], "what fits of it stays in memory"
    np.testing.assert_allclose(norms, expected_norms(stored, 8), rtol=1e-12)


@pytest.mark.parametrize("pool", [96 * MIB, 14 * MIB])
def test_a_result_asked_for_twice_is_computed_once(pool: int, stored: Path) -> None:
    v = np.random.default_rng(1).random((SIDE, 1))
    with session(pool_limit=pool) as current:
        a, lazy = oc.open(stored), oc.asarray(v)
        first = (a @ lazy).compute()
        expected = first.copy()
        first[:] = 0
        small_computes()
        np.testing.assert_array_equal((a @ lazy).compute(), expected, "what the caller does to a result is his own")
        assert read(current) <= 1.01 * size(stored)


def test_remembered_values_change_no_bits(stored: Path) -> None:
    def residual(name_it: bool) -> float:
        with session(pool_limit=96 * MIB):
            a, b, x = oc.open(stored), oc.ones((SIDE, 1)), oc.full((SIDE, 1), 0.3)
            for _ in range(3):
                r = b - a @ x
                if name_it:
                    float(norm(r))
                x = x + 0.2 * r
            return float(norm(b - a @ x))

    assert residual(True) == residual(False)


def test_the_forecast_counts_what_is_kept_known_and_remembered(stored: Path) -> None:
    with session(pool_limit=14 * MIB) as current:
        a, b, x = oc.open(stored), oc.ones((SIDE, 1)), oc.full((SIDE, 1), 0.3)
        for step in range(4):
            r = b - a @ x
            length = norm(r)
            told, before = oc.explain(length), read(current)
            done = oc.store({str(stored.with_name("n.npy")): length}, overwrite=True)
            assert done.bytes_read == told.bytes_read == read(current) - before
            assert told.remembered[0] >= 1
            if step:
                assert told.kept[0] > 0
                assert told.known[0] >= 1
                assert "in memory already" in str(told)
            x = x + 0.2 * r


def test_peak_memory_is_as_forecast_beside_what_is_kept(stored: Path, out: Path) -> None:
    with session(pool_limit=40 * MIB) as current:
        a = oc.open(stored)
        oc.compute(a.sum())
        for _ in range(3):
            targets = {str(out / "y.npy"): oc.random.normal((500, 500), seed=1) @ oc.random.normal((500, 500), seed=2)}
            told = oc.explain(targets, overwrite=True)
            done = oc.store(targets, overwrite=True)
            assert done.peak_bytes == told.peak_bytes
        before = read(current)
        oc.compute(a.max())
        assert read(current) == before, "a program that needs little memory evicts nothing"


def test_kept_tiles_survive_a_run_that_fails(stored: Path) -> None:
    def fail(block: Any) -> Any:
        raise ValueError("no")

    with session(pool_limit=96 * MIB) as current:
        a = oc.open(stored)
        oc.compute(a.sum())
        with pytest.raises(FunctionError):
            oc.compute(oc.map_blocks(fail, a, dtype="float64").sum())
        with pytest.raises(FunctionError):
            oc.compute(oc.map_blocks(fail, oc.ones((10,)), dtype="float64"))
        before = read(current)
        oc.compute(a.max())
        assert read(current) == before


def test_a_changed_file_is_never_answered_from_memory(stored: Path) -> None:
    with session(pool_limit=96 * MIB):
        a = oc.open(stored)
        total = a.sum()
        float(total)
        np.save(stored, np.zeros((SIDE, SIDE)))
        with pytest.raises(SourceChangedError):
            float(total)
        assert float(oc.open(stored).sum()) == 0.0


def test_values_give_way_to_programs_that_need_their_memory(stored: Path, out: Path) -> None:
    """A limit that a program just fits holds whatever was computed before it."""
    product = {str(out / "p.npy"): oc.open(stored).T @ oc.open(stored)}
    pool = 64 * MIB
    with session(pool_limit=1 * MIB), pytest.raises(oc.errors.MemoryLimitError) as refused:
        oc.explain(product, overwrite=True)
    assert refused.value.smallest is not None
    pool = refused.value.smallest
    with session(pool_limit=pool) as current:
        a = oc.open(stored)
        held = [a.sum(axis=axis) * number for axis in (0, 1) for number in range(20)]
        for array in held:
            float(array.max())
        read_before = read(current)
        oc.store(product, overwrite=True)
        assert read(current) > read_before
    np.testing.assert_allclose(np.load(out / "p.npy"), np.load(stored).T @ np.load(stored), rtol=1e-10)


def test_values_that_nobody_names_do_not_pile_up(data: Path) -> None:
    np.save(data / "X.npy", np.random.default_rng(0).random((40_000, 80)))
    with session(pool_limit=64 * MIB) as current:
        x, used = oc.open(data / "X.npy"), []
        oc.compute(x.sum())
        for number in range(60):
            rows = (x * (number + 1.0)).sum(axis=1)
            float(rows.max())
            del rows
            used.append(current.counters()["reserved_bytes"])
    assert max(used[10:]) <= used[5] + MIB


def of_files(number: int, data: Path, x: oc.Array) -> None:
    np.save(data / f"{number}.npy", np.full(200_000, float(number)))
    assert float(oc.open(data / f"{number}.npy").sum()) == 200_000.0 * number
    (data / f"{number}.npy").unlink()


def of_a_rewritten_file(number: int, data: Path, x: oc.Array) -> None:
    np.save(data / "y.npy", np.full(200_000, float(number)))
    assert float(oc.open(data / "y.npy").sum()) == 200_000.0 * number


def of_an_output(number: int, data: Path, x: oc.Array) -> None:
    oc.store({str(data / "z.npy"): x[:2500] * (number + 1.0)}, overwrite=True)
    oc.compute(oc.open(data / "z.npy").max())


def of_expressions(number: int, data: Path, x: oc.Array) -> None:
    rows = (x * (number + 1.0)).sum(axis=1)
    float(rows.max())


GONE = [of_files, of_a_rewritten_file, of_an_output, of_expressions]


@pytest.mark.parametrize("kind", GONE)
def test_memory_of_arrays_that_nobody_can_name_is_given_back(kind: Any, data: Path) -> None:
    np.save(data / "X.npy", np.random.default_rng(0).random((20_000, 80)))
    with session() as current:
        x, kept = oc.open(data / "X.npy"), []
        oc.compute(x.sum())
        for number in range(1, 41):
            kind(number, data, x)
            kept.append(current.counters()["kept_bytes"])
        assert max(kept[10:]) <= max(kept[:10]) + MIB
        # An array that has its name still is not read again.
        before = read(current)
        oc.compute((x + 0.5).sum())
        assert read(current) == before


def test_tiles_of_named_arrays_outlive_others(data: Path) -> None:
    for name in "ab":
        np.save(data / f"{name}.npy", np.ones((20_000, 100)))
    with session(pool_limit=64 * MIB) as current:
        named = oc.open(data / "a.npy")
        oc.compute(named.sum())
        oc.compute(oc.open(data / "b.npy").sum())
        # Room for one of the two: the one that was used last has no name.
        oc.compute((oc.ones((1_500, 1_000)) @ oc.ones((1_000, 1_500))).sum(), oc.ones((2_000, 1_000)))
        before = read(current)
        oc.compute(named.max())
        of_named = read(current) - before
        oc.compute(oc.open(data / "b.npy").max())
        of_other = read(current) - before - of_named
    assert of_named < of_other


CREEP = """
import sys
import outcore as oc
path, out = sys.argv[1:]
smallest = None
try:
    with oc.Session(memory_limit=1, threads=2, progress=False):
        oc.explain({out: oc.open(path) @ oc.open(path).T})
except oc.errors.MemoryLimitError as error:
    smallest = error.smallest
with oc.Session(memory_limit=smallest + (12 << 20), threads=2, progress=False):
    overheads = []
    for number in range(6):
        a = oc.open(path)
        oc.store({out: a @ a.T}, overwrite=True, progress=False)
        for other in range(5):
            float((a * other).sum())
            oc.compute(oc.ones((600, 600)) @ oc.ones((600, 600)), (a + other).max(axis=0))
        overheads.append(oc.explain(a.sum()).overhead_bytes)
    print(max(overheads) - min(overheads))
"""


def test_a_tight_program_runs_again_after_small_ones(stored: Path, out: Path) -> None:
    """The process's own memory does not creep up on the limit."""
    command = [sys.executable, "-c", CREEP, str(stored), str(out / "p.npy")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) <= 8 * MIB


def test_digests_are_equal_in_every_process_where_files_are_meant(stored: Path) -> None:
    code = (
        "import sys, numpy as np, outcore as oc; a = oc.open(sys.argv[1]);"
        "print(((a.T @ a) * 2 + oc.random.normal((1800, 1800), seed=3)).sum()._expr.digest,"
        " (a + 1)[5:, ::2].mean(axis=1)._expr.digest, oc.asarray(np.ones(3))._expr.digest)"
    )
    seen = []
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", code, str(stored)]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        seen.append(done.stdout.split())
    assert seen[0][:2] == seen[1][:2]
    assert seen[0][0] != seen[0][1]
    assert seen[0][2] != seen[1][2], "an array in memory is equal to itself only"


def test_digests_know_every_part_of_an_expression(stored: Path) -> None:
    a = oc.open(stored)
    arrays = [
        a,
        a.T,
        -a,
        abs(a),
        a + 1,
        a + 2,
        a - 1,
        a[1:],
        a[2:],
        a[::2],
        a.sum(axis=0),
        a.sum(axis=1),
        a.max(axis=0),
    ]
    arrays += [a.mean(), a.std(), a.var(correction=1), a.var(), a @ a, a @ a.T, a.astype("float32"), a.reshape(-1)]
    digests = {array._expr.digest for array in arrays}
    assert len(digests) == len(arrays)
    assert (oc.open(stored) + 1)._expr.digest == (a + 1)._expr.digest


def test_what_is_remembered_keeps_no_file_of_scratch(scratch: Path) -> None:
    from outcore.sparse.linalg._vectors import Holder

    with session(scratch):
        holder = Holder(1 << 20, 1 << 20)
        vector = oc.ones(1 << 17)
        for step in range(8):
            (vector,), found = holder.held([vector * 1.5], [oc.sum(vector * 1.5)])
            assert float(found[0]) == (1 << 17) * 1.5 ** (step + 1)
            # What is asked for again while its file is there is known.
            total = oc.sum(vector)
            assert float(total) == float(oc.sum(vector)) == float(found[0])
            del total
            assert len([name for name in files_below(scratch) if name.endswith(".npy")]) <= 2
