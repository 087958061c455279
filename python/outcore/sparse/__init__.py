"""Sparse matrices on disk: products that read them once, in as little memory as a few columns take."""

from outcore.sparse import linalg
from outcore.sparse._communities import label_propagation, spectral_embedding
from outcore.sparse._convert import from_coo, from_scipy, open
from outcore.sparse._factors import als, nmf
from outcore.sparse._matrix import SparseMatrix
from outcore.sparse._ranking import hits, pagerank

__all__ = [
    "SparseMatrix",
    "als",
    "from_coo",
    "from_scipy",
    "hits",
    "label_propagation",
    "linalg",
    "nmf",
    "open",
    "pagerank",
    "spectral_embedding",
]
