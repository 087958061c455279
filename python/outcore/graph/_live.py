"""Functions of graphs as live work: an operator that says its forecast, and the result that a run of it gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Generic, ParamSpec, TypeVar

from outcore import _core
from outcore.graph._activity import running

_P = ParamSpec("_P")
_T = TypeVar("_T")
_S = TypeVar("_S")


@dataclass(frozen=True)
class Live(Generic[_T]):
    """The work of a call that has not run."""

    #: Of which the forecast is; None where nothing runs.
    operator: _core.LiveOperator[Any] | None
    result: Callable[[], _T]

    def then(self, finish: Callable[[_T], _S]) -> Live[_S]:
        """The same work, with another result made of its result."""
        return Live(self.operator, lambda: finish(self.result()))


def work(name: str, operator: _core.LiveOperator[_T]) -> Live[_T]:
    """An operator, in a run of that name."""

    def result() -> _T:
        with running(name) as run:
            return operator.run(run)

    return Live(operator, result)


#: The work of each function, by the function.
works: dict[Callable[..., object], Callable[..., Live[Any]]] = {}


def live(build: Callable[_P, Live[_T]]) -> Callable[_P, _T]:
    """The function of the result of the work that `build` gives; `explain` asks the same work for its forecast."""

    @wraps(build)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return build(*args, **kwargs).result()

    # Callers see the type of the result, and errors the name of the function.
    signature = inspect.signature(build)
    returned = str(signature.return_annotation).removeprefix("Live[").removesuffix("]")
    call.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
    call.__annotations__ = {**build.__annotations__, "return": returned}
    call.__code__ = call.__code__.replace(co_name=build.__name__)  # type: ignore[attr-defined]
    works[call] = build
    return call


__all__ = ["Live", "live", "work", "works"]
