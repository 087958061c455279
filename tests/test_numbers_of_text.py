"""Lists of edges and Matrix Market files as other programs write them: byte order marks, thousands, decimal commas."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import FormatError

MARK = b"\xef\xbb\xbf"
MARKET = b"%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
@pytest.mark.parametrize("text", [b"0 1 2.5\n1 2 3\n", b"# from to\n0,1,2.5\n1,2,3\n", b"0\t1\t2.5\r\n1\t2\t3\r\n"])
def test_a_byte_order_mark_is_passed_over(text: bytes, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_bytes(pack(MARK + text))
    (tmp_path / "a.mtx").write_bytes(pack(MARK + MARKET + b"3 3 2\n1 2 2.5\n2 3 3\n"))
    wanted = np.asarray([[0, 2.5, 0], [0, 0, 3], [0, 0, 0]])
    with session():
        np.testing.assert_array_equal(oc.sparse.from_edges(tmp_path / "e.txt").toarray(), wanted)
        np.testing.assert_array_equal(oc.sparse.from_mtx(tmp_path / "a.mtx").toarray(), wanted)
        assert oc.graph.from_edges(tmp_path / "e.txt", weights=True).number_of_edges == 2


WRITTEN = (
    *("1,000 2,000", "1,000\t2,000", "1,000;2,000", "1,000|2,000", "1,234,567 2", "1 2 3,000", "1 2 3,000.5"),
    *("1.000 2.000", "1'000 2'000", "1_000 2_000", "1\u00a0000 2", "1\u202f000 2", '"1,000","2,000"'),
    *("0;1;2,5", "0 1 2,5", "0;1;1.000,5"),
)


@pytest.mark.parametrize("line", WRITTEN)
@pytest.mark.parametrize("before", ["", "1 2 3\n"])
def test_thousands_and_decimal_commas_are_refused_with_their_line(line: str, before: str, tmp_path: Path) -> None:
    (tmp_path / "e.txt").write_text(before + line + "\n", encoding="utf-8")
    values = {"values": True} if len(line.split()) == 3 or line.count(";") == 2 else {}
    number = before.count("\n") + 1
    with session():
        calls: list[Callable[[], Any]] = [lambda: oc.sparse.from_edges(tmp_path / "e.txt", **values)]  # type: ignore[arg-type]
        calls.append(lambda: oc.graph.from_edges(tmp_path / "e.txt", weights=None))
        for call in calls:
            with pytest.raises(FormatError, match=rf"e\.txt: line {number}: .*"):
                call()


@pytest.mark.parametrize("text", [b"1,000 1,000 1\n1 1 5\n", b"2000 2000 1\n1,000 1 5\n", b"9 9 1\n1 1 5,5\n"])
def test_matrix_market_files_likewise(text: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.mtx").write_bytes(MARKET + text)
    with session(), pytest.raises(FormatError, match=r"a\.mtx: line [23]: "):
        oc.sparse.from_mtx(tmp_path / "a.mtx")
