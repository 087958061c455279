"""Graphs on disk: lists of neighbours that are read when they are wanted, with the state of vertices in memory.

The room uses `sparse`, of whose matrices graphs are made, and arrays. Start with `_stored.py` (lists of a stored
graph), then `_graph.py` (`Graph`, with networkx's names), `_making.py` (entries to graphs) and `_program.py` (vertex
programs). Algorithms lie in files by their results; `_forecast.py` bounds their reads, and `_networkx.py` with the
files beside it is networkx's backend.
"""

import typing as _typing

from outcore._base.names import public_names as _public_names
from outcore._lazy.absent import hinted as _hinted
from outcore.graph._centrality import *
from outcore.graph._communities import *
from outcore.graph._components import *
from outcore.graph._counts import *
from outcore.graph._forecast import *
from outcore.graph._graph import Graph as Graph
from outcore.graph._graph import open as open
from outcore.graph._making import *
from outcore.graph._program import VertexProgram as VertexProgram
from outcore.graph._program import state as state
from outcore.graph._searching import *

__getattr__ = _hinted(__name__)

if not _typing.TYPE_CHECKING:  # a type checker follows the imports
    __all__ = _public_names(globals())
