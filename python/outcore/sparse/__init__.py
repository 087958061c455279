"""Sparse matrices on disk: products that read them once, in as little memory as a few columns take."""

from outcore._lazy.absent import hinted
from outcore.sparse import linalg
from outcore.sparse._arranging import kron
from outcore.sparse._communities import label_propagation, spectral_embedding
from outcore.sparse._compressed import from_anndata, from_binsparse, from_csr, from_npz, from_table
from outcore.sparse._convert import from_coo, from_scipy, open
from outcore.sparse._exports import to_edges, to_mtx, to_npz
from outcore.sparse._factors import als, nmf
from outcore.sparse._generators import banded, grid3d, rmat, rmat_edges
from outcore.sparse._ingest import from_entries
from outcore.sparse._layout import layout
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._nas import nas_cg
from outcore.sparse._ranking import hits, pagerank
from outcore.sparse._readers import from_binary, from_edges, from_mtx
from outcore.sparse._spgemm import explain_spgemm, spgemm

__getattr__ = hinted(__name__)

__all__ = [
    "SparseMatrix",
    "als",
    "banded",
    "explain_spgemm",
    "from_anndata",
    "from_binsparse",
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
    "hits",
    "kron",
    "label_propagation",
    "layout",
    "linalg",
    "nas_cg",
    "nmf",
    "open",
    "pagerank",
    "rmat",
    "rmat_edges",
    "spectral_embedding",
    "spgemm",
    "to_edges",
    "to_mtx",
    "to_npz",
]
