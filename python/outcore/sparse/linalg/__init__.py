"""Linear systems, eigenvalues and singular values of sparse matrices on disk, with SciPy's names and signatures.

Matrices are sparse ones on disk, lazy or NumPy's arrays, SciPy's sparse matrices and `LinearOperator`s. Vectors are
lazy arrays, results are lazy arrays whose values are held, in memory or in scratch.

The room uses sparse matrices and arrays alone. Start with `_operators.py` (how a matrix multiplies) and `_systems.py`
(arguments and the loop of solvers), then `_iterative.py`; `_eigen.py` and `_krylov.py` are the eigensolvers.
"""

import typing as _typing

from outcore._base.names import public_names as _public_names
from outcore._lazy.absent import hinted as _hinted
from outcore.linalg._pivots import Inertia as Inertia
from outcore.sparse.linalg._direct import *
from outcore.sparse.linalg._eigen import NotConvergedError as NotConvergedError
from outcore.sparse.linalg._eigenvalues import eigs as eigs
from outcore.sparse.linalg._eigenvalues import eigsh as eigsh
from outcore.sparse.linalg._exponential import *
from outcore.sparse.linalg._factorization import *
from outcore.sparse.linalg._gmres import *
from outcore.sparse.linalg._iterative import *
from outcore.sparse.linalg._lobpcg import *
from outcore.sparse.linalg._lsmr import *
from outcore.sparse.linalg._operators import aslinearoperator as aslinearoperator
from outcore.sparse.linalg._preconditioners import Preconditioner as Preconditioner
from outcore.sparse.linalg._preconditioners import block_jacobi as block_jacobi
from outcore.sparse.linalg._preconditioners import ic0 as ic0
from outcore.sparse.linalg._preconditioners import ilu0 as ilu0
from outcore.sparse.linalg._preconditioners import incomplete_lu as incomplete_lu
from outcore.sparse.linalg._preconditioners import jacobi as jacobi
from outcore.sparse.linalg._svds import *

__getattr__ = _hinted(__name__)

if not _typing.TYPE_CHECKING:  # a type checker follows the imports
    __all__ = _public_names(globals())
