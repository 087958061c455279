"""New numbers for the rows and columns of a square matrix: by the entries they have, or as given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from outcore._base.files import same_bytes
from outcore._lazy.array import Array
from outcore._lazy.node import Operand, node
from outcore._opening.opening import open
from outcore._run.run import compute, store
from outcore._standard.creation import arange
from outcore._standard.indexing import take
from outcore._standard.sorting import argsort, sort
from outcore._standard.statistical import counted
from outcore.errors import ArgumentError, ShapeError
from outcore.sparse._spool import Work


def labels_of(relabel: Any, rows: Array, columns: Array, shape: tuple[int, int], work: Work, target: Path) -> Array:
    """The new number of each row and column, uint64: a stored array, or the given one when it is a permutation."""
    if shape[0] != shape[1]:
        raise ShapeError(f"sparse: relabel of a matrix {shape}, which is not square")
    if isinstance(relabel, (str, bool)):
        if relabel != "degree":
            raise ArgumentError(f"sparse: relabel={relabel!r} is neither 'degree' nor an array")
        return by_degree(rows, columns, shape[0], work, target)
    return _checked_labels(relabel, shape[0])


def _checked_labels(labels: Operand, length: int) -> Array:
    numbering = Array(node(labels))
    if numbering.shape != (length,) or numbering.dtype.kind not in "iu":
        raise ShapeError(
            f"sparse: labels of shape {numbering.shape} and {numbering.dtype}; the matrix has {length} rows"
        )
    if length and not bool(compute((sort(numbering.astype(np.int64)) == arange(length)).all())):
        raise ArgumentError(f"sparse: labels are no permutation of the numbers below {length}")
    return numbering.astype(np.uint64)


def by_degree(rows: Array, columns: Array, length: int, work: Work, target: Path) -> Array:
    """Numbers by falling degree, rows and columns counted together, equal ones in their order. They are stored."""
    path, scratch = target.with_name(target.name + ".labels.npy"), work.path("labels.npy")
    if not work.resumes:
        _find_labels(path, rows, columns, length, work)
        kept: Array = open(path)
        return kept
    if work.noted("labels", "labels.npy") is None:
        _find_labels(scratch, rows, columns, length, work)
        work.note("labels", True)
    # The file beside the target is held against that of scratch, which is under checksums.
    if not path.exists() or not same_bytes(path, scratch):
        store({path: open(scratch)}, overwrite=True, resume=True)
    numbers: Array = open(scratch)
    return numbers


def _find_labels(path: Path, rows: Array, columns: Array, length: int, work: Work) -> None:
    # A program each, so that one sort at a time has the memory.
    degrees, order = work.path("degrees.npy"), work.path("order.npy")
    store({degrees: counted(rows, None, length) + counted(columns, None, length)}, overwrite=True)
    store({order: argsort(open(degrees), descending=True)}, overwrite=True)
    store({path: argsort(open(order)).astype(np.uint64)}, overwrite=True, resume=work.resumes)


def relabelled(labels: Array, rows: Array, columns: Array, shape: tuple[int, int], work: Work) -> tuple[Array, Array]:
    """Rows and columns by their new numbers, stored: they are read for places and their check. I/O: one sort each."""
    for name, numbers, length in (("rows", rows, shape[0]), ("columns", columns, shape[1])):
        file = f"new-{name}.npy"
        if work.noted(f"new-{name}", file) is not None or not numbers.shape[0]:
            continue
        low, high = (int(bound) for bound in compute(numbers.min(), numbers.max()))
        if low < 0 or high >= length:
            raise ArgumentError(f"sparse: {name} has {low if low < 0 else high}, the matrix {length}")
        new = take(labels, numbers.astype(np.int64))
        store({work.path(file): new}, overwrite=True, resume=work.resumes)
        work.note(f"new-{name}", True)
    if not rows.shape[0]:
        return rows, columns
    return open(work.path("new-rows.npy")), open(work.path("new-columns.npy"))


__all__ = ["labels_of", "relabelled"]
