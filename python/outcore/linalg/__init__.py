"""The standard's `linalg` namespace: products and norms, and beside them factorizations and what follows from them."""

from outcore._lazy.absent import hinted
from outcore.linalg import factorizations, products
from outcore.linalg.factorizations import *  # noqa: F403  # each name is listed there
from outcore.linalg.products import *  # noqa: F403

__getattr__ = hinted(__name__)

__all__ = sorted([*factorizations.__all__, *products.__all__])
