"""`NMF`: non-negative factors by multiplicative updates, one read of the data per iteration."""

from __future__ import annotations

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from outcore import _api as oc
from outcore._base.types import NDArray, RandomState
from outcore._lazy.array import Array
from outcore._lazy.node import ArrayLike, Operand
from outcore._run.iterate import Loop
from outcore.errors import ArgumentError
from outcore.learn import _svd
from outcore.learn._base import Answer, Data, Estimator
from outcore.learn._fit import Beside, Fit, fitting, values
from outcore.learn._flaws import first_flaw, refuse_flaws

_EPSILON = float(np.finfo(np.float32).eps)
_UPDATES = 20  # of W in one sweep, while H stays


def _ratio(above: Array, below: Array) -> Array:
    return above / oc.where(below == 0, _EPSILON, below)


class _DataFacts:
    """The mean of data and its sum of squares, once none of it is negative."""

    def __init__(self, x: Array) -> None:
        self._x, wide = x, x.astype(np.float64)
        self.terms: list[Operand] = [oc.min(x), oc.mean(wide), oc.sum(wide * wide), first_flaw(x)]

    def settle(self, results: list[NDArray]) -> tuple[float, float]:
        *sums, row = results
        refuse_flaws(sums, row, X=self._x)
        if sums[0] < 0:
            raise ArgumentError(f"Negative values in data passed to NMF (input X): the least is {sums[0]}")
        return float(sums[1]), float(sums[2])


class NMF(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Estimator):  # type: ignore[misc]
    """Non-negative W (n, k) and H (k, features) that make ½|X − WH|² small, by multiplicative updates.

    W ← W∘(XHᵀ)/(WHHᵀ), then H ← H∘(WᵀX)/(WᵀWH) (Lee, Seung 2001), both in one sweep over X and W; the error follows
    from WᵀX and WᵀW. The loop is `oc.iterate`: W lies in memory or scratch, `checkpoint` stores both factors every so
    many iterations (see `outcore.learn`), `verbose` shows the error. It ends where ten iterations would gain less than
    `tol` times the first error.

    `init`: "random", "nndsvda" (Boutsidis, Gallopoulos 2008; two reads more), None for that where k ≤ min(n, features),
    or "custom" with `W` and `H` given to `fit_transform`.

    Fitted: `components_` (H), `n_components_`, `reconstruction_err_` (|X − WH|), `n_iter_`, `history_` ("error" after
    each iteration), `n_features_in_`.
    I/O: `fit` reads X for the start, and once per iteration; `transform` twice.

    >>> import numpy as np
    >>> from outcore.learn import NMF
    >>> x = np.outer([1.0, 2.0, 3.0], [2.0, 1.0])
    >>> model = NMF(1).fit(x)
    >>> np.allclose(model.transform(x) @ model.components_, x)
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        init: str | None = None,
        tol: float = 1e-4,
        max_iter: int = 200,
        random_state: RandomState = None,
        verbose: int = 0,
        checkpoint: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose
        self.checkpoint = checkpoint

    @property
    def _n_features_out(self) -> int:
        return len(self.components_)

    def __sklearn_tags__(self) -> object:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def fit(self, X: ArrayLike, y: ArrayLike | None = None) -> NMF:
        """The factor H of `X`. I/O: those of the start, and one read per iteration."""
        self._factorize(self._read(X, reset=True), None, None)
        return self

    def fit_transform(
        self, X: ArrayLike, y: ArrayLike | None = None, W: ArrayLike | None = None, H: ArrayLike | None = None
    ) -> Answer:
        """`fit(X).transform(X)`: the W of `X` for the fitted H. `init="custom"` starts from the factors given here."""
        self._factorize(self._read(X, reset=True), W, H)
        return self.transform(X)

    def _factorize(self, data: Data, first: ArrayLike | None, second: ArrayLike | None) -> None:
        x = data.x.astype(np.float64)
        count = data.x.shape[1] if self.n_components is None else self.n_components
        if count < 1 or self.max_iter < 1:
            raise ArgumentError(f"NMF: n_components={count} and max_iter={self.max_iter} must each be at least 1")
        # `iterate` stores the large factors; the fit records the programs before.
        with fitting(self, data.x, first, second, progress=bool(self.verbose) or None) as fit:
            facts = _DataFacts(data.x)
            known = fit.along(facts.terms, facts.settle)
            left, right = self._begin(x, count, known, first, second, fit)
            loop = self._loop(x, left, right, known.value()[1])
            fit.history = {name: list(errors) for name, errors in loop.history.items()}
        self.components_ = loop.state[1].compute().astype(data.x.dtype)
        self.n_components_ = count
        self.reconstruction_err_ = float(loop.state[2].compute())
        self.n_iter_ = loop.iterations
        if self.tol > 0 and not loop.converged:
            self._not_converged(self.max_iter)

    def _begin(
        self, x: Array, count: int, facts: Beside, first: ArrayLike | None, second: ArrayLike | None, fit: Fit
    ) -> tuple[Array, Array]:
        """The factors to start from, lazy."""
        init = self.init or ("nndsvda" if count <= min(x.shape) else "random")
        if init == "custom":
            shapes = (x.shape[0], count), (count, x.shape[1])
            initial = [oc.asarray(part).astype(np.float64) for part in (first, second)]
            if tuple(part.shape for part in initial) != shapes:
                raise ArgumentError(f"NMF: W and H must have shapes {shapes}, not {[part.shape for part in initial]}")
            return initial[0], initial[1]
        seed = int(fit.random(self.random_state).randint(np.iinfo(np.int32).max))
        if init == "random":
            scale = float(np.sqrt(facts.value()[0] / count))
            factors = [oc.random.normal(shape, seed=seed) for shape in ((x.shape[0], count), (count, x.shape[1]))]
            return oc.abs(factors[0]) * scale, oc.abs(factors[1]) * scale
        if init == "nndsvda":
            return _from_singular(x, count, facts, seed, fit)
        raise ArgumentError(f"NMF: init={init!r} is none of random, nndsvda, custom")

    def _loop(self, x: Array, left: Array, right: Array, squares: float) -> Loop:
        """The state W, H, error after the iterations."""

        def step(w: Array, h: Array, error: Array) -> tuple[tuple[Array, ...], dict[str, Array]]:
            w = w * _ratio(x @ h.T, w @ (h @ h.T))
            across, gram = w.T @ x, w.T @ w
            h = h * _ratio(across, gram @ h)
            squared_error = squares - 2.0 * oc.sum(across * h) + oc.sum(gram * (h @ h.T))
            error = oc.sqrt(oc.clip(squared_error, 0.0, None))
            return (w, h, error), {"error": error}

        start = oc.asarray(np.asarray(np.sqrt(squares)))
        least = self.tol * float(np.sqrt(squares))
        return oc.iterate(
            step,
            (left, right, start),
            until=(lambda old, new, _: (old[2] - new[2]) * 10.0 < least) if self.tol > 0 else None,
            max_iter=self.max_iter,
            checkpoint=self.checkpoint,
        )

    def transform(self, X: ArrayLike) -> Answer:
        """The W of `X` for the fitted H, by `max_iter` updates (in whole twenties) from equal parts.

        I/O: two reads of `X`, and one of XHᵀ and W for each twenty updates, which one sweep makes.
        """
        data = self._read_fitted(X)
        x = data.x.astype(np.float64)
        small = self.components_.astype(np.float64)
        along, square = oc.asarray(small), small @ small.T
        facts = _DataFacts(data.x)
        facts.settle(values(facts.terms))
        scale = float(np.mean(self.components_)) or 1.0

        def step(w: Array, target: Array) -> tuple[Array, ...]:
            for _ in range(_UPDATES):
                w = w * _ratio(target, w @ oc.asarray(square))
            return w, target

        start = oc.full((x.shape[0], len(square)), scale)
        loop = oc.iterate(step, (start, x @ along.T), max_iter=-(-self.max_iter // _UPDATES), progress=False)
        return data.answer(loop.state[0].astype(data.x.dtype))

    def inverse_transform(self, X: ArrayLike) -> Answer:
        """W·H of a factor W. I/O: one read of it."""
        lazy = isinstance(X, Array)
        product = oc.asarray(X) @ oc.asarray(self.components_)
        return product if lazy else product.compute()


def _from_singular(x: Array, count: int, facts: Beside, seed: int, fit: Fit) -> tuple[Array, Array]:
    """NNDSVD with the mean for zeros: of each pair of singular vectors the larger of their two parts by sign."""
    if x.shape[1] <= 1000:
        singular = _svd.by_gram(x, center=False)
    else:
        singular = _svd.by_range(x, count, oversamples=10, power=4, center=False, random_state=seed, fit=fit)
    mean = facts.value()[0]
    sizes, vectors = singular.values[:count], singular.vectors[:count]
    directions = np.where(sizes > 0, 1 / np.where(sizes > 0, sizes, 1), 0)[:, None] * vectors
    left = x @ oc.asarray(np.ascontiguousarray(directions.T))
    parts = oc.clip(left, 0.0, None), oc.clip(-left, 0.0, None)
    norms = [np.sqrt(part) for part in values([oc.sum(part * part, axis=0) for part in parts])]
    mine = [np.maximum(vectors, 0), np.maximum(-vectors, 0)]
    theirs = [np.linalg.norm(part, axis=1) for part in mine]
    plus = norms[0] * theirs[0] >= norms[1] * theirs[1]
    size, across = np.where(plus, norms[0], norms[1]), np.where(plus, theirs[0], theirs[1])
    scale = np.sqrt(sizes * size * across)
    signs = np.where(plus, 1.0, -1.0)
    w = oc.clip(left * oc.asarray(signs * scale / np.where(size > 0, size, 1)), 0.0, None)
    h = np.maximum(vectors * signs[:, None], 0) * (scale / np.where(across > 0, across, 1))[:, None]
    return oc.where(w == 0, mean, w), oc.asarray(np.where(h == 0, mean, h))


__all__ = ["NMF"]
