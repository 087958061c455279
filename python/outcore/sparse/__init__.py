"""Sparse matrices on disk: products that read them once, in as little memory as a few columns take."""

from outcore.sparse._convert import from_coo, from_scipy, open
from outcore.sparse._ingest import from_entries
from outcore.sparse._matrix import SparseMatrix

__all__ = ["SparseMatrix", "from_coo", "from_entries", "from_scipy", "open"]
