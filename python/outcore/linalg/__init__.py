"""The standard's `linalg` namespace: products and norms, and beside them factorizations and what follows from them.

It uses the standard's functions and the core's factorizations. Start with `products.py`, then `factorizations.py` and
`eigenvalues.py`.
"""

import typing as _typing

from outcore._lazy.absent import hinted as _hinted
from outcore.linalg import (
    _cholesky,
    _ldl,
    _lu,
    _opening,
    _qr,
    _systems,
    _triangular,
    eigenvalues,
    factorizations,
    products,
)
from outcore.linalg._cholesky import *
from outcore.linalg._ldl import *
from outcore.linalg._lu import *
from outcore.linalg._opening import *
from outcore.linalg._qr import *
from outcore.linalg._systems import *
from outcore.linalg._triangular import *
from outcore.linalg.eigenvalues import *
from outcore.linalg.factorizations import *
from outcore.linalg.products import *

__getattr__ = _hinted(__name__)

if not _typing.TYPE_CHECKING:  # a type checker follows the imports
    _modules = (_cholesky, _ldl, _lu, _opening, _qr, _systems, _triangular, eigenvalues, factorizations, products)
    __all__ = sorted(name for module in _modules for name in module.__all__)
