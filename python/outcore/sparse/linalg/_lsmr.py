"""`lsmr`: least squares of a rectangular matrix, by Golub and Kahan's bidiagonalization."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from outcore import _api as oc
from outcore._base.shortened import record_text
from outcore._base.types import DType, NDArray
from outcore._lazy.array import Array
from outcore._lazy.node import Operand
from outcore._run.holding import Holder
from outcore.errors import LinAlgError
from outcore.sparse.linalg._operators import Damped, MatrixLike, Operator, floating_dtype, operator
from outcore.sparse.linalg._systems import largest_of, scale_for, unscaled, vector
from outcore.sparse.linalg._vectors import norm, ratio


class LSMRResult(NamedTuple):
    """The result of SciPy's `lsmr`: x, why it stopped, steps, |r|, |Aᴴr − damp²x|, |A| and cond(A) by estimate, |x|."""

    x: Array
    istop: int
    itn: int
    normr: float
    normar: float
    norma: float
    conda: float
    normx: float

    def __repr__(self) -> str:
        return record_text(self, self._fields)


def lsmr(
    A: MatrixLike,
    b: Operand,
    damp: float = 0.0,
    atol: float = 1e-6,
    btol: float = 1e-6,
    conlim: float = 1e8,
    maxiter: int | None = None,
    show: bool = False,
    x0: Operand | None = None,
    *,
    checkpoint: int | None = None,
) -> LSMRResult:
    """The x that makes |b − Ax|² + damp²|x|² least, for a matrix (m, n) of any shape (Fong, Saunders 2011).

    Arguments and results are SciPy's, but for `x0`, from which the same x is sought whatever `damp` is, where SciPy's
    damps x − x0: `istop` is 0 where `x0` solves it, 1 for Ax = b solved, 2 for least squares
    solved, 3 where cond(A) passes `conlim`, 7 where `maxiter` (least length of A) steps did not do. Norms of residuals
    are true ones, formed at the end, and `istop` goes by them. `show` shows a live line.

    Memory: b's length twice and x's four times, old and new. Raises ShapeError for shapes that differ. I/O: two reads
    of A per step, one forwards and one transposed, and two at each end.

    >>> import numpy as np, outcore as oc
    >>> found = oc.sparse.linalg.lsmr(np.asarray([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]), np.asarray([1.0, 0.0, 0.0]))
    >>> found.x.compute().round(6), found.istop
    (array([ 0.666667, -0.333333]), 2)
    """
    a = operator(A, "lsmr")
    rows, columns = a.shape
    b = vector("lsmr", b, rows, "b")
    dtype = floating_dtype(a.dtype, b.dtype)
    first = None if x0 is None else vector("lsmr", x0, columns, "x0").astype(dtype)
    b = b.astype(dtype)
    scale = scale_for(largest_of("lsmr", b=b, x0=first), dtype)
    x = oc.zeros(columns, dtype=dtype) if first is None else first
    if scale != 1:
        b, x = b * scale, x * scale
    if first is not None and damp:
        # |b − Ax|² + damp²|x|² is what is left of a system with damp·x = 0 below.
        a, damp = Damped(a, damp), 0.0
        b = oc.concat([b, oc.zeros(columns, dtype=dtype)])
    most = min(rows, columns) if maxiter is None else int(maxiter)
    size = float(norm(b).compute())
    tests = _Tests(damp, atol, btol, conlim, size)
    u, v, alpha, beta = _begun(a, b if first is None else b - a @ x)
    if not np.isfinite(alpha * beta):
        raise LinAlgError(_NOT_FINITE)
    if alpha * beta == 0 or most < 1:
        return _judged(a, b, x, tests, 0, (alpha, 1.0), scale)

    def step(x: Array, h: Array, hbar: Array, u: Array, v: Array, kept: Array) -> tuple[Array | dict[str, Array], ...]:
        old = dict(zip(_KEPT, (kept[place] for place in range(len(_KEPT))), strict=True))
        u, beta = _unit(a @ v - old["alpha"] * u)
        v, alpha = _unit(a.adjoint(u) - beta * v)
        new, theta, thetabar = _rotated(old, alpha, beta, damp)
        hbar = h - hbar * ratio(thetabar * new["rho"], old["rho"] * old["rhobar"])
        x = x + ratio(new["zeta"], new["rho"] * new["rhobar"]) * hbar
        h = v - ratio(theta, new["rho"]) * h
        numbers = oc.stack([new[name] for name in _KEPT])
        shown = {name: new[name] for name in ("normr", "normar", "norma", "conda")}
        return x, h, hbar, u, v, numbers, shown

    loop = oc.iterate(
        step,
        (x, v, oc.zeros_like(v), u, v, oc.asarray(_first(alpha, beta, dtype))),
        until=lambda _, new, __: tests.end(new[0], new[-1]),
        max_iter=most,
        checkpoint=checkpoint,
        progress=show or None,
    )
    facts = float(loop.history["norma"][-1]), float(loop.history["conda"][-1])
    return _judged(a, b, loop.state[0], tests, loop.iterations, facts, scale)


_NOT_FINITE = (
    "lsmr: products with A are not finite: it has NaN or infinity, or numbers whose squares overflow; scale it"
)
# The numbers that a step hands on, in this order.
_KEPT = (
    "alpha",
    "alphabar",
    "zetabar",
    "rho",
    "rhobar",
    "cbar",
    "sbar",
    "squares",
    "largest",
    "smallest",
    "betadd",
    "betad",
    "rhodold",
    "tautilde",
    "thetatilde",
    "zeta",
    "rest",
    "normr",
    "normar",
    "norma",
    "conda",
)


def _first(alpha: float, beta: float, dtype: DType) -> NDArray:
    """The numbers before the first step."""
    known = {"alpha": alpha, "alphabar": alpha, "zetabar": alpha * beta, "squares": alpha * alpha, "betadd": beta}
    ones = dict.fromkeys(("rho", "rhobar", "cbar", "rhodold"), 1.0)
    numbers = {"smallest": np.inf, "largest": 0.0} | known | ones
    return np.asarray([numbers.get(name, 0.0) for name in _KEPT], dtype=np.zeros(0, dtype=dtype).real.dtype)


def _unit(vector: Array) -> tuple[Array, Array]:
    """The vector with length 1, and its length."""
    size = norm(vector)
    return vector * ratio(oc.ones_like(size), size), size


def _begun(a: Operator, r: Array) -> tuple[Array, Array, float, float]:
    """u = r/β and v = Aᴴu/α. I/O: one read of A."""
    holder = Holder(max(a.shape) * 16, 8)
    u, beta = _unit(r)
    v, alpha = _unit(a.adjoint(u))
    held, norms = holder.held([u, v], [alpha, beta])
    return held[0], held[1], float(norms[0]), float(norms[1])


def _turn(a: Array, b: Array) -> tuple[Array, Array, Array]:
    """The rotation that takes (a, b) to (r, 0): c, s, r."""
    r = oc.sqrt(a * a + b * b)
    return ratio(a, r), ratio(b, r), r


def _rotated(old: dict[str, Array], alpha: Array, beta: Array, damp: float) -> tuple[dict[str, Array], Array, Array]:
    """The numbers after a step, by the paper's rotations; those with `d` or `tilde` give |r| (its section 5)."""
    chat, shat, damped = _turn(old["alphabar"], oc.full_like(alpha, damp))
    c, s, rho = _turn(damped, beta)
    theta, alphabar = s * alpha, c * alpha
    thetabar, across = old["sbar"] * rho, old["cbar"] * rho
    cbar, sbar, rhobar = _turn(across, theta)
    zeta, zetabar = cbar * old["zetabar"], -sbar * old["zetabar"]
    acute, check = chat * old["betadd"], -shat * old["betadd"]
    betahat, betadd = c * acute, -s * acute
    ctilde, stilde, rhotilde = _turn(old["rhodold"], thetabar)
    thetatilde, rhodold = stilde * rhobar, ctilde * rhobar
    betad = ctilde * betahat - stilde * old["betad"]
    tautilde = ratio(old["zeta"] - old["thetatilde"] * old["tautilde"], rhotilde)
    passed = old["rest"] + check * check
    squares = old["squares"] + beta * beta
    largest, smallest = oc.maximum(old["largest"], across), oc.minimum(old["smallest"], across)
    far = betad - ratio(zeta - thetatilde * tautilde, rhodold)
    new = {"alpha": alpha, "alphabar": alphabar, "zetabar": zetabar, "rho": rho, "rhobar": rhobar, "cbar": cbar}
    new |= {"sbar": sbar, "squares": squares + alpha * alpha, "largest": largest, "smallest": smallest}
    new |= {"betadd": betadd, "betad": betad, "rhodold": rhodold, "tautilde": tautilde, "thetatilde": thetatilde}
    new |= {"zeta": zeta, "rest": passed, "normr": oc.sqrt(passed + far * far + betadd * betadd)}
    new |= {"normar": oc.abs(zetabar), "norma": oc.sqrt(squares), "conda": ratio(largest, smallest)}
    return new, theta, thetabar


class _Tests(NamedTuple):
    """When to stop, of estimates or of true norms."""

    damp: float
    atol: float
    btol: float
    conlim: float
    size: float

    def end(self, x: Array, kept: Array) -> Array:
        """Whether an estimate says that it is solved, or never will be."""
        normr, normar, norma, conda = (kept[_KEPT.index(name)] for name in ("normr", "normar", "norma", "conda"))
        solved = normr <= self.btol * self.size + self.atol * norma * norm(x)
        least = normar <= self.atol * norma * normr
        return solved | least | ((conda > self.conlim) if self.conlim > 0 else (conda < 0))

    def reason(self, normr: float, normar: float, norma: float, conda: float, normx: float) -> int:
        """SciPy's `istop`. Estimates of a loop that ended are good to a few digits: twice the limit counts."""
        if normr <= 2 * (self.btol * self.size + self.atol * norma * normx):
            return 1
        if normar <= 2 * self.atol * norma * normr:
            return 2
        return 3 if 0 < self.conlim < conda else 7


def _judged(
    a: Operator, b: Array, x: Array, tests: _Tests, steps: int, facts: tuple[float, float], scale: float
) -> LSMRResult:
    """The result with true norms. I/O: two reads of A."""
    r = b - a @ x
    gradient = a.adjoint(r) - tests.damp**2 * x
    long = oc.sqrt(norm(r) ** 2 + (tests.damp * norm(x)) ** 2)
    held, norms = Holder(x.nbytes, 4).held([x], [long, norm(gradient), norm(x)])
    normr, normar, normx = (float(value) for value in norms)
    if not np.isfinite([normr, normar, normx, facts[0]]).all():
        raise LinAlgError(_NOT_FINITE)
    why = 0 if steps == 0 and normar == 0 else tests.reason(normr, normar, facts[0], facts[1], normx)
    x = held[0] if scale == 1 else unscaled("lsmr", held[0], scale)
    return LSMRResult(x, why, steps, normr / scale, normar / scale, *facts, normx / scale)


__all__ = ["LSMRResult", "lsmr"]
