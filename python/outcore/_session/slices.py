"""Bytes of stored arrays that a computation asks for, where it takes slices of them alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType

from outcore import _core
from outcore._session.record import recorder

# Nodes of an expression that are looked at.
_NODES_MAX = 10_000
_slices: ContextVar[Mapping[str, int]] = ContextVar("outcore_slices", default=MappingProxyType({}))


@contextmanager
def slices_of(outputs: Sequence[_core.Expr]) -> Iterator[None]:
    """Has runs of the block, of a program of these outputs, be recorded with their slices."""
    if recorder() is None:
        yield
        return
    token = _slices.set(sliced_bytes(outputs))
    try:
        yield
    finally:
        _slices.reset(token)


def slices() -> Mapping[str, int]:
    """The slices of the program that runs."""
    return _slices.get()


def sliced_bytes(outputs: Sequence[_core.Expr]) -> Mapping[str, int]:
    """By path, the bytes of all slices of a stored array; without arrays that are used whole as well. Of expressions
    with more than 10,000 nodes nothing. No I/O."""
    sliced: dict[str, int] = {}
    whole = {expr.op for expr in outputs if not expr.inputs}
    seen = {expr.id for expr in outputs}
    left = list(outputs)
    while left:
        expr = left.pop()
        for operand in expr.inputs:
            if operand.id not in seen:
                seen.add(operand.id)
                left.append(operand)
            if operand.inputs:
                continue
            if expr.op == "getitem":
                sliced[operand.op] = sliced.get(operand.op, 0) + expr.nbytes
            else:
                whole.add(operand.op)
        if len(seen) > _NODES_MAX:
            return {}
    return {path: size for path, size in sliced.items() if path not in whole}


__all__ = ["sliced_bytes", "slices", "slices_of"]
