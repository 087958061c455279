"""Sums of products by index (Einstein's convention), planned as matrix products and reductions."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

import numpy as np

from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._standard.linear_algebra import matmul
from outcore._standard.manipulation import permute_dims, reshape, squeeze
from outcore._standard.statistical import sum
from outcore.elementwise import multiply
from outcore.errors import ArgumentError, DTypeError, ShapeError


def einsum(subscripts: str, /, *operands: Operand) -> Array:
    """The sum of products that `subscripts` names: "ij,jk->ik" is a matrix product, "ij->j" sums columns.

    Letters name axes; those that the result lacks are summed over. Without "->" the result has the letters that occur
    once, in alphabetical order. Two operands at a time become one matrix product where they share summed letters, and
    an element-wise product where not; of several the order is chosen by cost (`numpy.einsum_path`, greedy). Integers
    are summed in their own type.

    An ellipsis names the axes that a term has beside its letters, counted from the last; they broadcast, and stand in
    the result where its ellipsis is, or lead it where there is no "->".

    Raises ArgumentError for subscripts that are none, ShapeError where a letter has two lengths.
    I/O: as the products and reductions, which `explain` shows.

    >>> import numpy as np, outcore as oc
    >>> a, b = np.asarray([[1.0, 2.0], [3.0, 4.0]]), np.asarray([1.0, 10.0])
    >>> oc.einsum("ij,j->i", a, b).compute()
    array([21., 43.])
    """
    arrays = [Array(node(operand)) for operand in operands]
    subscripts, arrays = _without_ellipsis(subscripts, arrays)
    terms, result = _parsed(subscripts, arrays)
    dtype = np.result_type(*(array.dtype for array in arrays))
    if dtype.kind == "b":
        raise DTypeError("einsum: sums of bool are not defined; cast the arrays first")
    pending = [_distinct(array.astype(dtype), term) for array, term in zip(arrays, terms, strict=True)]
    for step in _order(terms, result, arrays):
        chosen = [pending[place] for place in step]
        pending = [part for place, part in enumerate(pending) if place not in step]
        while len(chosen) > 1:
            kept = set(result).union(*(labels for _, labels in (*pending, *chosen[2:])))
            is_last = not pending and len(chosen) == 2
            chosen = [*chosen[2:], _contracted(chosen[0], chosen[1], kept, result if is_last else "")]
        pending.append(chosen[0])
    array, labels = _summed(*pending[0], set(result))
    return permute_dims(array, tuple(labels.index(label) for label in result)) if labels != result else array


def _without_ellipsis(subscripts: str, arrays: list[Array]) -> tuple[str, list[Array]]:
    """The subscripts with letters in place of each ellipsis, and the arrays without axes of length 1 that broadcast."""
    if "..." not in subscripts:
        return subscripts, arrays
    left, arrow, result = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(arrays) or any(term.count("...") > 1 for term in (*terms, result)):
        raise ArgumentError(f"einsum: {subscripts!r} for {len(arrays)} arrays: a term each, with one ellipsis at most")
    beside = [array.ndim - len(term.replace("...", "")) for term, array in zip(terms, arrays, strict=True)]
    if any(count < 0 or (count and "..." not in term) for count, term in zip(beside, terms, strict=True)):
        raise ShapeError(f"einsum: {subscripts!r} for shapes {', '.join(str(array.shape) for array in arrays)}")
    free = [letter for letter in string.ascii_letters if letter not in subscripts][: max(beside)]
    lengths: dict[str, int] = {}
    for array, term, count in zip(arrays, terms, beside, strict=True):
        first = term.find("...")
        for letter, length in zip(free[len(free) - count :], array.shape[first : first + count], strict=True):
            lengths[letter] = max(length, lengths.get(letter, 0)) if length else 0
    for place, (array, term, count) in enumerate(zip(arrays, terms, beside, strict=True)):
        first, letters = term.find("..."), free[len(free) - count :]
        flat = [at for at, letter in enumerate(letters) if array.shape[first + at] == 1 != lengths[letter]]
        arrays[place] = squeeze(array, tuple(first + at for at in flat)) if flat else array
        terms[place] = term.replace("...", "".join(letter for at, letter in enumerate(letters) if at not in flat))
    if not arrow:
        once = sorted(label for label in set(left) - set(".,") if left.count(label) == 1)
        result = "..." + "".join(once)
    return f"{','.join(terms)}->{result.replace('...', ''.join(free))}", arrays


def _parsed(subscripts: str, arrays: Sequence[Array]) -> tuple[list[str], str]:
    text = subscripts.replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if "." in text or not all(term.isalpha() or not term for term in (*terms, result)):
        raise ArgumentError(f"einsum: subscripts {subscripts!r} are not letters, commas and one arrow")
    if len(terms) != len(arrays):
        raise ArgumentError(f"einsum: {len(terms)} terms in {subscripts!r} and {len(arrays)} arrays")
    if not arrow:
        result = "".join(sorted(label for label in set(left) - {","} if left.count(label) == 1))
    if len(set(result)) != len(result) or not set(result) <= set(left):
        raise ArgumentError(f"einsum: the result {result!r} repeats a letter or has one that no term of {left!r} has")
    lengths: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        if len(term) != array.ndim:
            raise ShapeError(f"einsum: term {term!r} for an array of shape {array.shape}")
        for label, length in zip(term, array.shape, strict=True):
            if lengths.setdefault(label, length) != length:
                raise ShapeError(f"einsum: {label!r} is {lengths[label]} long and {length} long")
    return terms, result


def _order(terms: list[str], result: str, arrays: Sequence[Array]) -> list[Sequence[int]]:
    """Which operands are taken together, one step after the other; what they make goes behind the others."""
    if len(terms) < 2:
        return []
    stand_ins = [np.broadcast_to(np.float64(0), array.shape) for array in arrays]
    path, _ = np.einsum_path(f"{','.join(terms)}->{result}", *stand_ins, optimize="greedy")
    return list(path[1:])


def _distinct(array: Array, labels: str) -> tuple[Array, str]:
    """The array with each letter once: its diagonal along axes of one letter."""
    while True:
        repeated = next((label for label in labels if labels.count(label) > 1), None)
        if repeated is None:
            return array, labels
        first = labels.index(repeated)
        second = labels.index(repeated, first + 1)
        others = [axis for axis in range(len(labels)) if axis not in (first, second)]
        moved = permute_dims(array, (*others, first, second))
        length = array.shape[first]
        flat = reshape(moved, (*moved.shape[:-2], length * length))
        array = flat[..., :: length + 1] if length else flat
        labels = "".join(labels[axis] for axis in others) + repeated


def _summed(array: Array, labels: str, kept: set[str]) -> tuple[Array, str]:
    """Without the axes whose letters nobody needs any more."""
    gone = tuple(axis for axis, label in enumerate(labels) if label not in kept)
    if not gone:
        return array, labels
    return sum(array, axis=gone, dtype=array.dtype), "".join(label for label in labels if label in kept)


def _contracted(first: tuple[Array, str], second: tuple[Array, str], kept: set[str], result: str) -> tuple[Array, str]:
    """Two arrays as one, over the letters that somebody needs; in the order of `result` where that costs nothing."""
    (a, left), (b, right) = first, second
    a, left = _summed(a, left, kept | set(right))
    b, right = _summed(b, right, kept | set(left))
    inner = [label for label in left if label in right and label not in kept]
    both = [label for label in left if label in right and label in kept]
    ours = [label for label in left if label not in right]
    theirs = [label for label in right if label not in left]
    lengths = dict(zip(left + right, a.shape + b.shape, strict=True))
    if not inner:
        order = list(result) or [*both, *ours, *theirs]
        return multiply(_spread(a, left, order), _spread(b, right, order)), "".join(order)

    def size(labels: Sequence[str]) -> int:
        return math.prod(lengths[label] for label in labels)

    def shape(labels: Sequence[str]) -> tuple[int, ...]:
        return tuple(lengths[label] for label in labels)

    rows = permute_dims(a, tuple(left.index(label) for label in (*both, *ours, *inner)))
    columns = permute_dims(b, tuple(right.index(label) for label in (*both, *inner, *theirs)))
    product = matmul(
        reshape(rows, (*shape(both), size(ours), size(inner))),
        reshape(columns, (*shape(both), size(inner), size(theirs))),
    )
    return reshape(product, shape([*both, *ours, *theirs])), "".join([*both, *ours, *theirs])


def _spread(array: Array, labels: str, order: Sequence[str]) -> Array:
    """The array with its axes where the wanted letters are, and axes of length 1 for the others."""
    present = [label for label in order if label in labels]
    moved = permute_dims(array, tuple(labels.index(label) for label in present))
    lengths = dict(zip(labels, array.shape, strict=True))
    return reshape(moved, tuple(lengths[label] if label in labels else 1 for label in order))


__all__ = ["einsum"]
