"""Bytes of stored arrays that a computation asks for, where it takes slices of them alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from outcore import _core

# Nodes of an expression that are looked at.
_NODES_MAX = 10_000


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


__all__ = ["sliced_bytes"]
