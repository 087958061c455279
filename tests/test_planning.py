"""Planning ends: in time, in memory, in words, and when nobody waits for it any more."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import cgroup
from support.running import session

import outcore as oc
from outcore._show.explanation import Explanation
from outcore.errors import MemoryLimitError

NEEDS_CGROUP = "no memory cgroup can be made here (it needs root), and no other limit counts resident memory"


@pytest.fixture
def tall_and_wide(tmp_path: Path) -> tuple[oc.Array, oc.Array]:
    np.save(tmp_path / "tall.npy", np.ones((500_000, 10)))
    np.save(tmp_path / "wide.npy", np.ones((600, 20_000)))
    return oc.open(tmp_path / "tall.npy"), oc.open(tmp_path / "wide.npy")


@pytest.mark.parametrize("pool_mebibytes", range(36, 72, 4))
def test_tiles_kept_by_one_program_never_hinder_the_next(
    pool_mebibytes: int, tall_and_wide: tuple[oc.Array, oc.Array], out: Path
) -> None:
    """They were offered beside fixed bytes that left them no room, and every plan was found stale."""
    tall, wide = tall_and_wide
    with session(pool_limit=pool_mebibytes << 20) as one:
        oc.compute(tall.sum())
        targets = [(str(out / name)) for name in ("o.npy", "t.npy")]
        exprs = [wide.T._expr, tall.sum(axis=0)._expr]
        program = one.plan(exprs, [{"path": path, "overwrite": True, "chunks": None} for path in targets])
        _, outcome = one.run(program)
        assert outcome.peak_bytes <= pool_mebibytes << 20


def test_a_program_whose_kept_tiles_are_gone_is_planned_anew(
    tall_and_wide: tuple[oc.Array, oc.Array], out: Path
) -> None:
    tall, _ = tall_and_wide
    with session(pool_limit=96 << 20) as one:
        oc.compute(tall.sum())
        target: Any = {"path": str(out / "t.npy"), "overwrite": True, "chunks": None}
        program = one.plan([(tall * 2)._expr], [target])
        said = Explanation.of(program)
        assert said.kept[1] > 0
        assert said.bytes_read < tall.nbytes
        one.clear()
        _, outcome = one.run(program)
        assert outcome.bytes_read >= tall.nbytes
        np.testing.assert_array_equal(np.load(out / "t.npy"), np.full((500_000, 10), 2.0))


def test_a_store_that_goes_on_is_planned_anew_too(tmp_path: Path) -> None:
    """The plan that is made anew holds the outputs and stages of the one that it is made for."""
    values = np.random.default_rng(1).random(1_200_000)
    np.save(tmp_path / "v.npy", values)
    with session(pool_limit=24 << 20) as one:
        v = oc.open(tmp_path / "v.npy")
        oc.sum(v).compute()
        target: Any = {"path": str(tmp_path / "s.npy"), "overwrite": True, "chunks": None, "resume": True}
        program = one.plan([oc.sort(v + 1)._expr], [target])
        one.clear()
        one.run(program)
        del program
    np.testing.assert_array_equal(np.load(tmp_path / "s.npy"), np.sort(values + 1))
    assert [path.name for path in tmp_path.iterdir() if "resume" in path.name] == []


def test_plans_that_did_not_fit_are_part_of_the_explanation(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.random.default_rng(0).random((3000, 1000)))
    x = oc.open(tmp_path / "x.npy")
    with session(pool_limit=256 << 20):
        assert oc.explain(oc.argsort(x, axis=0)).refusals == ()
    with session(pool_limit=16 << 20):
        said = oc.explain({str(tmp_path / "y.npy"): oc.argsort(x, axis=0)})
    parts = [parts for of, parts, _ in said.refusals if of == "argsort"]
    assert parts == sorted(parts)
    assert parts[0] == 1
    assert all(need > 0 for *_, need in said.refusals)
    assert "did not fit" in str(said)
    assert "argsort in 1/2 of the memory: needs 10.4 MiB" in str(said)


def chain(length: int, form: str, folder: Path) -> tuple[oc.Array, Any]:
    """A long product of one matrix and a vector, written three ways."""
    matrix = np.eye(40) + np.diag(np.full(39, 1e-3), 1)
    vector = np.linspace(0, 1, 40)[:, None]
    np.save(folder / "A.npy", matrix)
    np.save(folder / "v.npy", vector)
    a, x = oc.open(folder / "A.npy"), oc.open(folder / "v.npy")
    power = np.linalg.matrix_power(matrix, length)
    if form == "from the right":
        for _ in range(length):
            x = a @ x
        return x, power @ vector
    if form == "from the left":
        x = x.T
        for _ in range(length):
            x = x @ a
        return x, vector.T @ power
    product = a
    for _ in range(length - 1):
        product = product @ a
    return product @ x, power @ vector


@pytest.mark.parametrize("form", ["from the right", "from the left", "square first"])
@pytest.mark.parametrize("length", [100, 300])
def test_long_chains_of_products_are_associated_from_the_vector(form: str, length: int, tmp_path: Path) -> None:
    lazy, expected = chain(length, form, tmp_path)
    with session():
        flops = oc.explain(lazy).flops
        np.testing.assert_allclose(lazy.compute(), expected, rtol=1e-9)
    assert flops == 2 * 40 * 40 * length


@pytest.mark.skipif(not cgroup.is_real(), reason=NEEDS_CGROUP)
def test_a_chain_of_ten_thousand_products_is_planned_within_the_limit(tmp_path: Path) -> None:
    """It took cubic time and square memory: 4,000 products two minutes, and more than 256 MiB."""
    outcome = cgroup.run_limited(
        "support.children:long_chain", {"folder": str(tmp_path), "products": 10_000}, 256 << 20, 120
    )
    assert outcome.reason is None, outcome.stderr
    assert outcome.value["flops"] == 2 * 1000 * 1000 * 10_000
    assert outcome.value["passes"] == 10_000


def test_an_interrupted_plan_leaves_its_turn() -> None:
    """Another session had to wait for the planner, which went on for a minute."""
    outcome = cgroup.run_limited("support.children:interrupted_plan_then_another", {}, None, 120)
    assert outcome.reason is None, outcome.stderr
    assert outcome.value == {"interrupted": True, "total": 3.0}


@pytest.mark.parametrize("option", ["memory_limit", "pool_limit"])
def test_the_limit_that_a_refused_plan_names_works(option: str, tmp_path: Path) -> None:
    """40 factorization steps, whose plan alone is more than such a limit leaves. Each in a process of its own."""
    np.save(tmp_path / "X.npy", np.random.default_rng(0).random((60_000, 100)))
    np.save(tmp_path / "W.npy", np.random.default_rng(1).random((60_000, 10)))
    given: dict[str, Any] = {"x": str(tmp_path / "X.npy"), "w": str(tmp_path / "W.npy"), "iterations": 40}
    refused = cgroup.run_limited(
        "support.children:long_factorization",
        given | {"options": {option: 60 << 20 if option == "memory_limit" else 1}},
    )
    assert refused.error is not None, refused.stderr
    assert "the smallest limit that works is" in refused.error["message"]
    named = refused.error["smallest"]
    planned = cgroup.run_limited("support.children:long_factorization", given | {"options": {option: named}})
    assert planned.reason is None
    assert planned.value > 500


def test_a_shorter_window_is_taken_where_memory_is_short(tmp_path: Path) -> None:
    """Partial results of the size of a tile are held for every task at work."""
    np.save(tmp_path / "x.npy", np.ones((4, 512, 1024)))
    lazy = oc.open(tmp_path / "x.npy").mean(axis=0)
    with session(pool_limit=1, threads=2), pytest.raises(MemoryLimitError) as refused:
        oc.compute(lazy)
    assert refused.value.smallest is not None
    with session(pool_limit=refused.value.smallest, threads=2):
        assert oc.explain(lazy).window <= 2
        assert oc.compute(lazy).sum() == 512 * 1024


def test_a_window_that_was_asked_for_is_kept_by_the_limit_named(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((40, 512, 1024)))
    lazy = oc.open(tmp_path / "x.npy").mean(axis=0)
    with session(pool_limit=1, threads=2, window=6), pytest.raises(MemoryLimitError) as refused:
        oc.compute(lazy)
    with session(pool_limit=refused.value.smallest, threads=2, window=6):
        assert oc.explain(lazy).window == 6


def test_more_results_than_sixteen_bits_count() -> None:
    """65,537 results of one pass lost their numbers."""
    with session():
        values = oc.compute(*[oc.asarray(np.float64(number)) + 1 for number in range(65_537)])
    assert [float(values[place]) for place in (0, 65_535, 65_536)] == [1.0, 65_536.0, 65_537.0]


def test_more_tiles_than_have_numbers_are_refused_in_words() -> None:
    huge = oc.ones((1 << 58,), dtype="u1") + oc.ones((1 << 58,), dtype="u1")
    with session(), pytest.raises(oc.errors.OutcoreError, match=r"more than one program can have|limit"):
        oc.explain({"unwritten.npy": huge.astype("u2")})


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_a_sum_in_a_wider_type_takes_its_tile_in_blocks(threads: int, axis: int | None) -> None:
    """It widened a whole tile of bytes, twice, for each thread."""
    narrow = np.ones((1_000_003, 3), np.int8)
    with session(threads=threads, pool_limit=96 << 20):
        sums = oc.asarray(narrow).sum(axis=axis)
        assert oc.explain(sums).peak_bytes <= 9 * sums.nbytes + (threads + 1) * narrow.nbytes
        assert np.array_equal(oc.compute(sums), narrow.sum(axis=axis))
