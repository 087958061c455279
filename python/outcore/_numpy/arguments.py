"""NumPy's arguments handed on to ours: what differs is refused, naming what is taken."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from outcore._base.types import Keywords
from outcore.errors import DTypeError


def check_arguments(name: str, ours: Callable[..., object], args: tuple[object, ...], options: Keywords) -> None:
    """Refuses what NumPy's function takes and ours does not."""
    signature = inspect.signature(ours)
    try:
        signature.bind(*args, **options)
    except TypeError as error:
        taken = ", ".join(signature.parameters)
        raise DTypeError(f"numpy.{name}: {error}; of outcore arrays it takes {taken}") from None


def adapted(name: str, ours: Callable[..., object], theirs: Callable[..., object]) -> Callable[..., object]:
    """A function as it is: what it takes by place is passed by place, all else by name, whatever the caller did."""
    signature = inspect.signature(theirs)
    kinds = [(parameter.name, parameter.kind) for parameter in signature.parameters.values()]
    by_place = [
        parameter
        for parameter in inspect.signature(ours).parameters.values()
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY
    ]

    def call(*args: object, **options: object) -> object:
        if any(kind is inspect.Parameter.VAR_POSITIONAL for _, kind in kinds):
            return ours(*args, **options)
        arguments = dict(signature.bind(*args, **options).arguments)
        places = tuple(
            arguments.pop(theirs_name) for theirs_name, _ in kinds[: len(by_place)] if theirs_name in arguments
        )
        check_arguments(name, ours, places, arguments)
        return ours(*places, **arguments)

    return call
