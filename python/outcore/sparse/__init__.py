"""Sparse matrices on disk: products that read them once, in as little memory as a few columns take."""

from outcore.sparse._arranging import kron
from outcore.sparse._compressed import from_anndata, from_csr, from_npz, from_table
from outcore.sparse._convert import from_coo, from_scipy, open
from outcore.sparse._exports import to_edges, to_mtx, to_npz
from outcore.sparse._generators import banded, grid3d, rmat, rmat_edges
from outcore.sparse._ingest import from_entries
from outcore.sparse._layout import layout
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._nas import nas_cg
from outcore.sparse._readers import from_binary, from_edges, from_mtx

__all__ = [
    "SparseMatrix",
    "banded",
    "from_anndata",
    "from_binary",
    "from_coo",
    "from_csr",
    "from_edges",
    "from_entries",
    "from_mtx",
    "from_npz",
    "from_scipy",
    "from_table",
    "grid3d",
    "kron",
    "layout",
    "nas_cg",
    "open",
    "rmat",
    "rmat_edges",
    "to_edges",
    "to_mtx",
    "to_npz",
]
