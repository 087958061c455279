"""Linear systems, eigenvalues and singular values of sparse matrices on disk, with SciPy's names and signatures.

Matrices are sparse ones on disk, lazy or NumPy's arrays, SciPy's sparse matrices and `LinearOperator`s. Vectors are
lazy arrays, results are lazy arrays whose values are held, in memory or in scratch.
"""

from outcore._lazy.absent import hinted
from outcore.sparse.linalg._eigen import NotConvergedError
from outcore.sparse.linalg._eigenvalues import eigs, eigsh
from outcore.sparse.linalg._gmres import gmres
from outcore.sparse.linalg._iterative import bicgstab, cg, minres
from outcore.sparse.linalg._lobpcg import lobpcg
from outcore.sparse.linalg._lsmr import LSMRResult, lsmr
from outcore.sparse.linalg._operators import aslinearoperator
from outcore.sparse.linalg._preconditioners import Preconditioner, block_jacobi, ic0, ilu0, incomplete_lu, jacobi
from outcore.sparse.linalg._svds import randomized_svd, svds

__getattr__ = hinted(__name__)

__all__ = [
    "LSMRResult",
    "NotConvergedError",
    "Preconditioner",
    "aslinearoperator",
    "bicgstab",
    "block_jacobi",
    "cg",
    "eigs",
    "eigsh",
    "gmres",
    "ic0",
    "ilu0",
    "incomplete_lu",
    "jacobi",
    "lobpcg",
    "lsmr",
    "minres",
    "randomized_svd",
    "svds",
]
