"""Random expressions, built step by step in outcore and NumPy at once, so that every step is checked by its oracle.

A `Pair` knows whether its value is exact: small integers in any type survive sums, products and comparisons without
rounding, so outcore must give them to the bit. Once rounding has entered (a quotient, a square root, a mean), only
smooth steps follow, and results are compared within the error that sums may differ by.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import outcore as oc

DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
ITEMS_MAX = 4_000_000
# The largest integer below which every integer is exact, with a margin for the sums that lead to it.
EXACT_BELOW = {"float16": 2**10, "float32": 2**22, "complex64": 2**22}
ROUNDING = {"float16": 2e-2, "float32": 2e-5, "complex64": 2e-5}


@dataclass(frozen=True)
class Pair:
    """A lazy array and the value it must have; `scale` bounds what was ever added up on the way."""

    lazy: Any
    value: Any
    exact: bool
    scale: float

    @property
    def kind(self) -> str:
        return self.value.dtype.kind


@dataclass
class Builder:
    """Draws sources and steps; `lengths` are the lengths axes may have."""

    draw: Callable[[Any], Any]
    folder: Path
    lengths: Sequence[int]
    dimensions_max: int = 3
    pairs: list[Pair] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def pick(self, choices: Sequence[Any]) -> Any:
        return self.draw(st.sampled_from(list(choices)))

    # -- sources ------------------------------------------------------------------------------------------------

    def shape(self) -> tuple[int, ...]:
        count = self.draw(st.integers(0, self.dimensions_max))
        shape = tuple(self.pick(self.lengths) for _ in range(count))
        return shape if math.prod(shape) <= ITEMS_MAX else shape[:1]

    def source(self, shape: tuple[int, ...], dtype: str | None = None) -> Pair:
        """Small integers of a drawn type, in memory or stored in a drawn way."""
        kind = np.dtype(dtype or self.pick(DTYPES))
        seed = self.draw(st.integers(0, 1000))
        low = 0 if kind.kind in "bu" else -3
        value: Any = np.random.default_rng(seed).integers(low, 2 if kind.kind == "b" else 4, shape).astype(kind)
        how = self.pick(("memory", "memory, strided", ".npy", ".npy, Fortran order", ".npy, big-endian", "Zarr"))
        self.steps.append(f"{kind.name}{shape} from {how}")
        return Pair(self._lazy(value, how), value, exact=True, scale=4.0)

    def _lazy(self, value: Any, how: str) -> Any:
        if how == "memory":
            return oc.asarray(value)
        if how == "memory, strided":
            wide = np.repeat(value, 2, axis=-1) if value.ndim else value
            return oc.asarray(wide[..., ::2] if value.ndim else wide)
        path = self.folder / f"{len(list(self.folder.iterdir()))}"
        if how == "Zarr":
            return self._zarr(value, path)
        if how == ".npy, Fortran order":
            value = np.asarray(value, order="F")
        if how == ".npy, big-endian":
            value = value.astype(value.dtype.newbyteorder(">"))
        np.save(path.with_suffix(".npy"), value)
        return oc.open(path.with_suffix(".npy"))

    def _zarr(self, value: Any, path: Path) -> Any:
        import zarr

        # At most a few hundred chunks: a long axis gets long ones.
        least = [max(1, length // 50) for length in value.shape]
        chunks = tuple(
            self.draw(st.integers(low, max(low, length + 1))) for low, length in zip(least, value.shape, strict=True)
        )
        stored: Any = zarr.create_array(
            str(path), shape=value.shape, dtype=value.dtype, chunks=chunks or (), compressors=None
        )
        stored[...] = value
        return oc.open(path)

    # -- steps --------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """One more pair, from those there are; a step that does not apply adds nothing."""
        pair = self.pick(self.pairs)
        name = self.pick(tuple(STEPS))
        made = STEPS[name](self, pair)
        if made is not None and made.value.size <= ITEMS_MAX:
            assert made.lazy.shape == made.value.shape, self.steps
            assert made.lazy.dtype == made.value.dtype, self.steps
            self.steps.append(name)
            self.pairs.append(made)

    def apply(self, function: Callable[..., Any], *pairs: Pair, exact: bool = True, grows: float = 0.0) -> Pair:
        """The pair of a function applied to both sides; `grows` is the largest sum the step may have formed."""
        with np.errstate(all="ignore"):
            value = np.asarray(function(np, *(pair.value for pair in pairs)))
        lazy = function(oc, *(pair.lazy for pair in pairs))
        scale = max([grows, largest(value), *(pair.scale for pair in pairs)])
        still = exact and all(pair.exact for pair in pairs) and scale < EXACT_BELOW.get(value.dtype.name, 2**50)
        return Pair(lazy, value, still, scale)

    def partner(self, pair: Pair) -> Pair:
        """A pair that broadcasts with another: one there is, or a new source of a fitting shape."""
        fitting = [other for other in self.pairs if broadcasts(pair.value.shape, other.value.shape)]
        if self.draw(st.booleans()):
            return self.pick(fitting)
        kept = pair.value.shape[self.draw(st.integers(0, pair.value.ndim)) :]
        return self.source(tuple(1 if self.draw(st.booleans()) else length for length in kept))


def largest(value: Any) -> float:
    finite = np.abs(value[np.isfinite(value)]) if value.dtype.kind in "fc" else np.abs(value.astype(float))
    return float(finite.max()) if finite.size else 0.0


def broadcasts(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    try:
        return math.prod(np.broadcast_shapes(a, b)) <= ITEMS_MAX
    except ValueError:
        return False


def _binary(build: Builder, pair: Pair) -> Pair | None:
    other = build.partner(pair)
    if pair.kind == other.kind == "b":
        name = build.pick(("logical_and", "logical_or", "logical_xor"))
    else:
        name = build.pick(("add", "subtract", "multiply"))
    return build.apply(lambda xp, a, b: getattr(xp, name)(a, b), pair, other)


def _scalar(build: Builder, pair: Pair) -> Pair | None:
    """Python scalars are weak: they take the array's type when they can."""
    if pair.kind == "b":
        return None
    number = build.pick((2, 3, 0.5) if pair.kind != "c" else (2, 0.5, 1j))
    name = build.pick(("__add__", "__mul__", "__rsub__"))
    if name == "__rsub__" and pair.kind == "u":
        return None
    return build.apply(lambda _, a: getattr(a, name)(number), pair)


def _compare(build: Builder, pair: Pair) -> Pair | None:
    other = build.partner(pair)
    if not (pair.exact and other.exact):
        return None
    names = ("equal", "not_equal") if "c" in pair.kind + other.kind else ("less", "less_equal", "greater", "equal")
    name = build.pick(names)
    return build.apply(lambda xp, a, b: getattr(xp, name)(a, b), pair, other)


def _unary(build: Builder, pair: Pair) -> Pair | None:
    if pair.kind == "b":
        return build.apply(lambda xp, a: xp.logical_not(a), pair)
    names = ["abs", "positive", "square"] + ([] if pair.kind == "u" else ["negative"])
    if pair.exact and pair.kind in "if":
        names += ["sign"]
    if pair.exact and pair.kind == "f":
        names += ["floor", "ceil", "trunc", "round"]
    name = build.pick(names)
    return build.apply(lambda xp, a: getattr(xp, name)(a), pair, exact=not (name == "abs" and pair.kind == "c"))


def _smooth(build: Builder, pair: Pair) -> Pair | None:
    """Functions that round; only on exact values, so that errors do not grow through them."""
    if not pair.exact or pair.kind not in "iuf" or largest(pair.value) > 9:
        return None
    name = build.pick(("sqrt", "exp", "log1p", "tanh", "sin"))
    return build.apply(lambda xp, a: getattr(xp, name)(xp.abs(a)), pair, exact=False)


def _divide(build: Builder, pair: Pair) -> Pair | None:
    other = build.partner(pair)
    if not other.exact or "b" in pair.kind + other.kind:
        return None
    return build.apply(lambda _, a, b: a / (b * b + 1), pair, other, exact=False)


def _whole_division(build: Builder, pair: Pair) -> Pair | None:
    if not pair.exact or pair.kind not in "iuf":
        return None
    name = build.pick(("floor_divide", "remainder"))
    return build.apply(lambda xp, a: getattr(xp, name)(a, 3), pair)


def _where(build: Builder, pair: Pair) -> Pair | None:
    if not pair.exact:
        return None
    a, b = build.partner(pair), build.partner(pair)
    if not broadcasts(np.broadcast_shapes(pair.value.shape, a.value.shape), b.value.shape):
        return None
    return build.apply(lambda xp, c, a, b: xp.where(c != 0, a, b), pair, a, b)


def _clip(build: Builder, pair: Pair) -> Pair | None:
    return build.apply(lambda xp, a: xp.clip(a, 1, 2), pair) if pair.kind in "iuf" else None


def _extreme(build: Builder, pair: Pair) -> Pair | None:
    other = build.partner(pair)
    name = build.pick(("maximum", "minimum"))
    if set(pair.kind + other.kind) & set("bc"):
        return None
    return build.apply(lambda xp, a, b: getattr(xp, name)(a, b), pair, other)


def _astype(build: Builder, pair: Pair) -> Pair | None:
    """Only casts that lose nothing, or that NumPy defines: a float outside an integer's range has no value."""
    kinds = [name for name in DTYPES if np.can_cast(pair.value.dtype, name)]
    if pair.exact and pair.kind in "iuf" and largest(pair.value) < 100 and (pair.value >= 0).all():
        kinds += ["int8", "uint8", "float16", "int32"]
    name = build.pick(kinds)
    return build.apply(lambda xp, a: a.astype(name), pair)


def _reduce(build: Builder, pair: Pair) -> Pair | None:
    axis = _axes(build, pair.value.ndim)
    axes = tuple(range(pair.value.ndim)) if axis is None else (axis if isinstance(axis, tuple) else (axis,))
    count = math.prod(pair.value.shape[place] for place in axes)
    names = ["sum"]
    if pair.exact:
        names += ["any", "all", "count_nonzero"]
    if count and pair.kind in "iuf":
        names += ["max", "min", "mean"] + (["var", "std"] if pair.exact else [])
    if 0 < count <= 8 and pair.kind in "iuf":
        names += ["prod"]
    name = build.pick(names)
    keep = build.draw(st.booleans())
    smooth = name in ("mean", "var", "std")
    # Python's own float, so that NumPy's scalar types do not leak into the bound.
    grows = float(np.abs(pair.value).astype(float).sum()) if name in ("sum", "mean") and pair.value.size else 0.0
    grows = max(grows, largest(pair.value) ** 2 * count) if name in ("var", "std") else grows
    return build.apply(
        lambda xp, a: getattr(xp, name)(a, axis=axis, keepdims=keep),
        pair,
        exact=not smooth,
        grows=grows if math.isfinite(grows) else 0.0,
    )


def _axes(build: Builder, dimensions: int) -> Any:
    if dimensions == 0:
        return None
    single = st.integers(-dimensions, dimensions - 1)
    several = st.lists(st.integers(0, dimensions - 1), min_size=1, max_size=dimensions, unique=True).map(tuple)
    return build.draw(st.one_of(st.none(), single, several))


def _argument(build: Builder, pair: Pair) -> Pair | None:
    if not pair.exact or pair.kind not in "iuf" or pair.value.size == 0:
        return None
    axis = build.draw(st.one_of(st.none(), st.integers(0, pair.value.ndim - 1))) if pair.value.ndim else None
    name = build.pick(("argmin", "argmax"))
    return build.apply(lambda xp, a: getattr(xp, name)(a, axis=axis), pair)


def _slice(build: Builder, pair: Pair) -> Pair | None:
    def part(length: int) -> Any:
        if length and build.draw(st.integers(0, 4)) == 0:
            return build.draw(st.integers(-length, length - 1))
        return build.draw(st.slices(length))

    key = tuple(part(length) for length in pair.value.shape[: build.draw(st.integers(0, pair.value.ndim))])
    extra = build.pick(((), (None,), (Ellipsis,), (Ellipsis, None)))
    return build.apply(lambda _, a: a[(*key, *extra)], pair)


def _permute(build: Builder, pair: Pair) -> Pair | None:
    axes = build.draw(st.permutations(range(pair.value.ndim)))
    return build.apply(lambda _, a: a.transpose(*axes) if axes else a.T, pair)


def _reshape(build: Builder, pair: Pair) -> Pair | None:
    size = pair.value.size
    divisors = [part for part in (1, 2, 3, 5, 7, 8) if size and size % part == 0]
    first = build.pick(divisors) if divisors else 0
    shape = build.pick(((-1,), (first, -1), (-1, first), (1, first, -1))) if size else (0, 3)
    return build.apply(lambda _, a: a.reshape(shape), pair)


def _concat(build: Builder, pair: Pair) -> Pair | None:
    same = [other for other in build.pairs if other.value.shape == pair.value.shape]
    other = build.pick(same)
    name = build.pick(("concat", "stack") if pair.value.ndim else ("stack",))
    axis = build.draw(st.integers(0, pair.value.ndim - (name == "concat")))
    return build.apply(lambda xp, a, b: getattr(xp, name)([a, b, a], axis=axis), pair, other)


def _expand(build: Builder, pair: Pair) -> Pair | None:
    if pair.value.ndim > 4:
        return None
    axis = build.draw(st.integers(0, pair.value.ndim))
    return build.apply(lambda xp, a: xp.expand_dims(a, axis=axis), pair)


def _squeeze(build: Builder, pair: Pair) -> Pair | None:
    ones = [place for place, length in enumerate(pair.value.shape) if length == 1]
    axis = build.pick(ones) if ones else ()
    return build.apply(lambda xp, a: xp.squeeze(a, axis=axis), pair)


def _broadcast(build: Builder, pair: Pair) -> Pair | None:
    shape = (build.pick((1, 2, 3)), *(3 if length == 1 else length for length in pair.value.shape))
    return build.apply(lambda xp, a: xp.broadcast_to(a, shape), pair) if len(shape) < 5 else None


def _matmul(build: Builder, pair: Pair) -> Pair | None:
    if pair.value.ndim == 0 or pair.kind == "b":
        return None
    inner = pair.value.shape[-1]
    tail = build.pick(((inner,), (inner, 1), (inner, 3), (inner, 5)))
    lead = pair.value.shape[:-2] if len(tail) == 2 and build.draw(st.booleans()) else ()
    if math.prod((*lead, *tail)) > ITEMS_MAX:
        return None
    other = build.source((*lead, *tail), build.pick([name for name in DTYPES if name != "bool"]))
    grows = largest(pair.value) * 4 * max(inner, 1)
    return build.apply(lambda _, a, b: a @ b, pair, other, grows=grows)


STEPS: dict[str, Callable[[Builder, Pair], Pair | None]] = {
    function.__name__.strip("_"): function
    for function in (
        *(_binary, _scalar, _compare, _unary, _smooth, _divide, _whole_division, _where, _clip, _extreme, _astype),
        *(_reduce, _argument, _slice, _permute, _reshape, _concat, _expand, _squeeze, _broadcast, _matmul),
    )
}


def check(found: Any, pair: Pair, steps: Sequence[str]) -> None:
    """The computed value against NumPy's: to the bit while exact, else within what rounding may differ by."""
    told = "; ".join(steps)
    assert isinstance(found, np.ndarray), told
    assert found.dtype == pair.value.dtype, told
    assert found.shape == pair.value.shape, told
    if pair.exact or pair.kind in "biu":
        np.testing.assert_array_equal(found, pair.value, err_msg=told)
        return
    rounding = ROUNDING.get(pair.value.dtype.name, 1e-12)
    np.testing.assert_allclose(
        found, pair.value, rtol=rounding, atol=rounding * pair.scale, equal_nan=True, err_msg=told
    )
