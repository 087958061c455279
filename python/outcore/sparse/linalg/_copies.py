"""Whether eigenvalues that converged are there more often than they were found."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from outcore._base.types import DType, NDArray
from outcore.sparse.linalg._krylov import Krylov

# How much better than the worst of some eigenvalues others are, by what is wanted.
Gain = Callable[[NDArray, NDArray], NDArray]
_CHANCE = 1e-4  # of a random vector, to have less than that much of its usual part along a given one
_ROUNDINGS = 1000  # of |A|, within which eigenvalues count as equal


class Copies:
    """A search for copies of eigenvalues: by a space from random vectors Z that are orthogonal to all that were found.

    A Krylov space has one vector of each eigenspace for each vector of its first block. So the vectors X that
    converged are locked, and A Y = Y T + Q B goes on beside them, from Y = Z. An eigenvector u beside X, of an
    eigenvalue λ, has

        uᴴY (λ − T) = uᴴQ B, hence uᴴZ = uᴴQ · B (λ − T)⁻¹ E for Y E = Z

    and since Q of one restart is Z of the next, |uᴴZ| is at most the norm of the product of these small matrices, the
    `growth` at λ. Of random Z it is about 1/√n: once the growth at λ is far below, there is no such u.
    """

    def __init__(self, points: NDArray, growth: NDArray, start: int, hermitian: bool) -> None:
        self.points = points  # eigenvalues of which a copy would count
        self._hermitian = hermitian
        self._growth = growth  # of each, (width, width)
        self._start = start  # of Z in Y

    @classmethod
    def begin(cls, space: Krylov, values: NDArray, gain: Gain, margin: float, hermitian: bool) -> Copies | None:
        """A search beside vectors of some eigenvalues; nothing where no copy would be better than the worst of them."""
        gains = gain(values, values)
        better = gains > margin
        if not better.any():
            return None
        points = values[better].astype(np.complex128)
        width = len(space.b)
        growth = np.broadcast_to(np.eye(width, dtype=np.complex128), (len(points), width, width))
        return cls(points, growth, 0, hermitian)

    def state(self) -> list[npt.ArrayLike]:
        """All that the search goes on from after a restart."""
        return [self.points, self._growth, self._start]

    @classmethod
    def resumed(cls, values: Sequence[NDArray], hermitian: bool) -> Copies:
        """The search that had such a `state`."""
        points, growth, start = values
        return cls(points, growth, int(start), hermitian)

    def _grown(self, space: Krylov) -> NDArray:
        """The growth at each point, of all that the space has."""
        t, b = space.t[space.locked :, space.locked :], space.b[:, space.locked :]
        first = np.eye(len(t))[:, self._start : self._start + len(b)]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self._hermitian:
                values, turns = np.linalg.eigh((t + t.conj().T) / 2)
                left, right = b @ turns, turns.conj().T @ first
                growths = [(left / (point - values)) @ right for point in self.points]
            else:
                growths = [_against(b, point * np.eye(len(t)) - t) @ first for point in self.points]
            return np.asarray(growths) @ self._growth

    def excluded(self, space: Krylov, order: int) -> bool:
        """Whether there is no copy at any point."""
        if len(space.basis) - space.locked < self._start + len(space.b):
            return False  # Z has not joined Y
        sizes = np.linalg.norm(self._grown(space), axis=(1, 2))
        return bool((sizes <= _CHANCE / np.sqrt(order)).all())

    def restarted(self, space: Krylov, kept: int) -> None:
        """To be told before a restart, after which `kept` vectors of Y stand before Q."""
        self._growth, self._start = self._grown(space), kept


def _against(b: NDArray, matrix: NDArray) -> NDArray:
    """B M⁻¹, infinite where there is none."""
    try:
        return np.linalg.solve(matrix.T, b.T).T
    except np.linalg.LinAlgError:
        return np.full(b.shape, np.inf, dtype=np.complex128)


def margin_of(values: NDArray, whole: NDArray, tol: float, dtype: DType) -> float:
    """By how much eigenvalues differ that are not equal but for rounding, or for the tolerance that was asked for."""
    sizes = float(np.abs(values).max(initial=0.0)), float(np.abs(whole).max(initial=0.0))
    return max(tol * sizes[0], _ROUNDINGS * float(np.finfo(dtype).eps) * max(sizes))


__all__ = ["Copies", "Gain", "margin_of"]
