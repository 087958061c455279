"""Methods of `SparseMatrix` that SciPy's own functions call: products that are computed at once."""

from __future__ import annotations

from outcore._base.types import NDArray
from outcore._lazy.node import Operand
from outcore.elementwise import conj
from outcore.sparse._stored import StoredMatrix


class Called(StoredMatrix):
    """The methods of `scipy.sparse.linalg.LinearOperator` for `SparseMatrix`: SciPy's solvers take it as it is.

    Solvers that multiply by `@` and work on in NumPy (`lobpcg`, `expm_multiply`) take
    `outcore.sparse.linalg.aslinearoperator(A)`; solvers that factorize, `A.to_scipy()`.
    """

    def matvec(self, x: Operand) -> NDArray:
        """A·x as a NumPy array, for x (n,) or (n, 1). I/O: one read of what is not in memory.

        >>> import numpy as np, outcore as oc, scipy.sparse.linalg, tempfile, pathlib
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.ocs"
        >>> A = oc.sparse.from_scipy(scipy.sparse.diags_array([1.0, 2.0, 4.0]), path)
        >>> x, info = scipy.sparse.linalg.cg(A, np.ones(3), rtol=1e-10)
        >>> x.round(6), info
        (array([1.  , 0.5 , 0.25]), 0)
        """
        return self.product(x).compute()

    def rmatvec(self, x: Operand) -> NDArray:
        """Aᴴ·x as a NumPy array. I/O: as `matvec`."""
        if self.dtype.kind != "c":
            return self.T.product(x).compute()
        return conj(self.T.product(conj(x))).compute()

    def matmat(self, x: Operand) -> NDArray:
        """A·X as a NumPy array, for X (n, k). I/O: as `matvec`."""
        return self.matvec(x)

    def rmatmat(self, x: Operand) -> NDArray:
        """Aᴴ·X as a NumPy array. I/O: as `matvec`."""
        return self.rmatvec(x)


__all__ = ["Called"]
