"""Sparse matrices on disk: products that read them once, in as little memory as a few columns take.

The room uses arrays and everything below them; `graph` uses it. Start with `_stored.py` (the base of a
matrix) and `_matrix.py` (`SparseMatrix` and its products); `_ingest.py`, `_spool.py` and `_tiles.py` take entries in
any order into tiles, `_stream.py` rewrites matrices tile row by tile row, `linalg/` has solvers with SciPy's names.
"""

import typing as _typing

from outcore._base.names import public_names as _public_names
from outcore._lazy.absent import hinted as _hinted
from outcore.sparse import linalg as linalg
from outcore.sparse._arranging import kron as kron
from outcore.sparse._communities import *
from outcore.sparse._compressed import *
from outcore.sparse._convert import *
from outcore.sparse._exports import *
from outcore.sparse._factors import *
from outcore.sparse._generators import *
from outcore.sparse._ingest import from_entries as from_entries
from outcore.sparse._layout import *
from outcore.sparse._matrix import *
from outcore.sparse._nas import nas_cg as nas_cg
from outcore.sparse._ranking import hits as hits
from outcore.sparse._ranking import pagerank as pagerank
from outcore.sparse._readers import from_binary as from_binary
from outcore.sparse._readers import from_edges as from_edges
from outcore.sparse._readers import from_mtx as from_mtx
from outcore.sparse._spgemm import *

__getattr__ = _hinted(__name__)

if not _typing.TYPE_CHECKING:  # a type checker follows the imports
    __all__ = _public_names(globals())
