"""Linear systems over sparse matrices on disk, with SciPy's names."""

from outcore.sparse.linalg._gmres import gmres
from outcore.sparse.linalg._iterative import bicgstab, cg, minres
from outcore.sparse.linalg._operators import aslinearoperator
from outcore.sparse.linalg._lsmr import LSMRResult, lsmr
from outcore.sparse.linalg._preconditioners import Preconditioner, block_jacobi, incomplete_lu, jacobi
