"""Graphs in other processes: by path, as arrays that were opened from files."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from support.running import session

import outcore as oc
from outcore.errors import ArgumentError, MissingFileError, SourceChangedError
from outcore.graph import bfs
from outcore.graph._networkx import convert_from_nx


def test_another_process_searches_it(out: Path) -> None:
    with session(out):
        G = oc.graph.from_arrays([0, 1, 3], [1, 2, 3], out / "g.ocg")
        with ProcessPoolExecutor(1, get_context("spawn")) as others:
            found = others.submit(bfs, G, 0).result()
        assert np.array_equal(found, bfs(G, 0))
        assert pickle.loads(pickle.dumps(G)).path == G.path


def test_a_file_that_is_another_is_refused(out: Path) -> None:
    with session(out):
        text = pickle.dumps(oc.graph.from_arrays([0, 1], [1, 2], out / "g.ocg"))
        oc.graph.from_arrays([0, 1], [1, 0], out / "g.ocg", overwrite=True)
        with pytest.raises(SourceChangedError, match=r"g\.ocg"):
            pickle.loads(text)
        (out / "g.ocg").unlink()
        with pytest.raises(MissingFileError):
            pickle.loads(text)
        with pytest.raises(ArgumentError, match="from_networkx"):
            pickle.dumps(convert_from_nx(nx.path_graph(3)))
