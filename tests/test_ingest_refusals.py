"""Texts of edges under limits that are too small: refused by some of their lines, with a limit that works."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import FormatError, MemoryLimitError
from outcore.sparse._foreseen import looked_at
from outcore.sparse._readers import text_lines

LINES, VERTICES = 400_000, 60_000
CALLS: dict[str, Callable[[Path], Any]] = {
    "matrix": lambda path: oc.sparse.from_edges(path, values=True),
    "pattern": lambda path: oc.sparse.from_edges(path, values=False),
    "graph": lambda path: oc.graph.from_edges(path),
    "weighted": lambda path: oc.graph.from_edges(path, weights=True),
    "undirected": lambda path: oc.graph.from_edges(path, weights=True, directed=False),
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("edges") / "e.txt"
    ends = np.random.default_rng(7).integers(0, VERTICES, (LINES, 2)).tolist()
    path.write_text("# from to weight\n" + "".join(f"{a} {b} 0.5\n" for a, b in ends))
    return path


def refusals(call: Callable[[Path], Any], path: Path, limit: int) -> list[tuple[int, int]]:
    """Bytes that were read before each refusal, and the limit that each names, until the call succeeds."""
    found: list[tuple[int, int]] = []
    while len(found) < 5:
        with session(memory_limit=limit, threads=2) as s:
            try:
                call(path)
            except MemoryLimitError as error:
                limit = error.smallest
                found.append((s.counters()["bytes_read"], limit))
            else:
                return found
    return found


@pytest.mark.parametrize("name", CALLS)
def test_a_text_is_refused_before_it_is_read_and_once(name: str, text: Path) -> None:
    found = refusals(CALLS[name], text, 32 << 20)
    assert len(found) == 1
    assert found[0][0] < text.stat().st_size // 10


def test_lines_are_counted_by_some_of_them(text: Path) -> None:
    lines = looked_at(text, lambda: text_lines(text, places=(2,)))
    assert lines is not None
    assert abs(lines.entries - LINES) < LINES // 50
    assert VERTICES * 0.99 < lines.order <= VERTICES


def test_texts_that_tell_nothing_are_read(text: Path, tmp_path: Path) -> None:
    packed, short = tmp_path / "e.gz", tmp_path / "short.txt"
    packed.write_bytes(gzip.compress(text.read_bytes(), 1))
    short.write_text("0 1 2.0\n")
    for path in (packed, short):
        assert looked_at(path, lambda path=path: text_lines(path, places=(2,))) is None  # type: ignore[misc]
    assert oc.graph.from_edges(packed, weights=True).number_of_edges == oc.graph.from_edges(text).number_of_edges
    assert oc.sparse.from_edges(short).nnz == 1


def test_a_line_that_is_wrong_is_named_by_who_reads(text: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_text(text.read_text() + "1 2 x\n")
    with pytest.raises(FormatError, match=f"line {LINES + 2}"):
        oc.graph.from_edges(bad, weights=True)
