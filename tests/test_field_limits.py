"""Sparse matrices, graphs, cached files and estimators at the limit that their own refusals name, plus a page.

Each public function runs in a memory group of that limit: the resident size stays within it, each program does as was
forecast, reads of graphs are within their bounds; and so beside a thread that computes and reads through a cache. With
OUTCORE_LARGE data is eight times the limit, and every call runs beside the thread.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from benchmarks import cgroup
from conftest import LARGE
from support import confined, field_inputs
from support.confined import Confined
from support.field_calls import CALLS, MOVES_NOTHING, public_names
from support.sizes import spread

PAGE = 4096
TINY = 1 << 20
REFUSALS_MAX = 2
# Reads of an index or of a few pages, under whatever limit.
SMALL_BYTES = 9 << 20  # seven are pages of the library that a call is the first to touch
RESERVES_NOTHING = {
    "graph.Graph.degrees": "holds 8 bytes a vertex",
    "graph.Graph.degree_counts": "counts the degrees that are held",
    "graph.Graph.size": "sums up the degrees",
    "graph.degree_histogram": "holds the degrees",
    "graph.explain": "says what would be needed",
    "sparse.explain_spgemm": "says what would be needed",
}
BEYOND_THE_LIMIT: dict[str, str] = {}
_TILE_ROWS = "each program is refused by itself, then the tile rows that are written"
_OPERANDS = "a tile row is refused, then those of both operands, then that of the result"
_KIND = "the products that find the kind of a matrix are refused, then its analysis, then its factor"
REFUSED_OFTEN = {
    "sparse.from_csr": _TILE_ROWS,
    "sparse.linalg.eigs": "each doubling of the basis is refused by itself",
}
# These are refused a third time, or not, as the process is a page larger or smaller.
REFUSED_AT_TIMES = {
    "sparse.linalg.factorized": _KIND,
    "sparse.linalg.spsolve": _KIND,
    **{
        f"sparse.SparseMatrix.{name}": _OPERANDS for name in ("add", "maximum", "part", "permute", "__add__", "__sub__")
    },
    **{
        f"sparse.from_{name}": _TILE_ROWS
        for name in ("anndata", "binary", "binsparse", "entries", "mtx", "npz", "table")
    },
    "graph.from_arrays": _TILE_ROWS,
    "sparse.kron": _OPERANDS,
}

pytestmark = pytest.mark.skipif(
    not cgroup.is_real(),
    reason="no memory cgroup can be made here (it needs root), and no other limit counts resident memory",
)


class Servers:
    """A process that forks for each call, one with scikit-learn and one without; what became of each call."""

    def __init__(self, inputs: Path) -> None:
        self._plain = Confined(inputs, "outcore")
        self._learning = Confined(inputs, f"outcore {' '.join(ESTIMATOR_MODULES)}")
        self._known: dict[str, tuple[list[int], dict[str, Any]]] = {}

    def at_its_limit(self, name: str, out: Path, beside: bool) -> tuple[list[int], dict[str, Any]]:
        """The limits that were refused, and what became of the call at the one that was named last."""
        key = f"{name} {beside}"
        if key not in self._known:
            self._known[key] = self._tried(name, out, beside)
        return self._known[key]

    def _tried(self, name: str, out: Path, beside: bool) -> tuple[list[int], dict[str, Any]]:
        server = self._learning if name.startswith("learn.") else self._plain
        limit, refused = TINY, []
        while True:
            ran = server.attempt(name, out, limit, beside)
            error = ran.get("error") or {}
            if error.get("type") != "MemoryLimitError":
                return refused, ran
            assert error["smallest"] >= limit, (
                f"{limit} bytes are refused, {error['smallest']} named: {error['message']}"
            )
            refused.append(limit)
            limit = error["smallest"] + PAGE
            shutil.rmtree(out)
            out.mkdir()

    def close(self) -> None:
        self._plain.close()
        self._learning.close()


ESTIMATOR_MODULES = [
    f"outcore.learn.{name}"
    for name in (
        *("cluster", "decomposition", "encoding", "factorization", "gradient_descent", "linear_model", "logistic"),
        *("minibatch", "mixture", "preprocessing"),
    )
]


@pytest.fixture(scope="module")
def servers(shared: Path) -> Iterator[Servers]:
    field_inputs.save(shared)
    made = Servers(shared)
    yield made
    made.close()


def faulty(names: Sequence[str], always: dict[str, str], at_times: dict[str, str]) -> list[Any]:
    """Calls; those that are known to fail, for data of this size, as failures that are expected."""
    known = always | at_times
    return [
        pytest.param(name, marks=pytest.mark.xfail(reason=known[name], strict=name in always and not LARGE))
        if name in known
        else name
        for name in names
    ]


def assert_within(ran: dict[str, Any], beside: bool) -> None:
    """Not killed, within the limit, and what was forecast is what was done."""
    assert ran["signal"] is None, f"killed by signal {ran['signal']} at {ran['limit']} bytes"
    assert "error" not in ran, ran["error"]
    assert not ran.get("oom_kills")
    assert ran["peak_rss_bytes"] <= ran["limit"]
    value = ran["value"]
    for program in value["programs"]:
        for figure in confined.FIGURES:
            forecast, done = program[figure]
            # Beside others memory comes back that was held when the program was placed.
            is_bound = not program["exact"] or (beside and figure == "peak_bytes")
            assert done <= forecast if is_bound else done == forecast, (figure, program)
    forecast = value["forecast"]
    if forecast is not None and forecast["bytes_read"] is not None and value["has_own_counters"] >= beside:
        assert value["bytes_read"] <= forecast["bytes_read"]
        assert value["bytes_written"] <= forecast["bytes_written"]


def test_every_public_name_is_called_or_moves_nothing() -> None:
    names = public_names()
    called = {name.partition(",")[0] for name in CALLS}
    assert not called & set(MOVES_NOTHING)
    assert names <= called | set(MOVES_NOTHING)
    assert {name for name in called | set(MOVES_NOTHING) if ".__" not in name} <= names


@pytest.mark.parametrize("name", faulty(spread(list(CALLS), 28), BEYOND_THE_LIMIT, {}))
def test_the_limit_that_is_named_holds(name: str, servers: Servers, out: Path) -> None:
    refused, ran = servers.at_its_limit(name, out, False)
    if name in RESERVES_NOTHING:
        assert refused == []
        ran |= {"limit": ran["begun_bytes"] + SMALL_BYTES}
    else:
        assert refused, "it needs no memory"
    assert_within(ran, False)


@pytest.mark.parametrize("name", faulty(spread(list(CALLS), 28), REFUSED_OFTEN, REFUSED_AT_TIMES))
def test_the_second_limit_that_is_named_is_enough(name: str, servers: Servers, out: Path) -> None:
    refused, _ = servers.at_its_limit(name, out, False)
    assert len(refused) <= REFUSALS_MAX


@pytest.mark.parametrize("name", faulty(spread(list(CALLS), 7), BEYOND_THE_LIMIT, {}))
def test_it_holds_beside_a_thread_that_computes_and_reads(name: str, servers: Servers, out: Path) -> None:
    _, ran = servers.at_its_limit(name, out, True)
    assert_within(ran, True)
