"""`iterate`: loops whose every step is one planned program, with what they work on kept in memory in between."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, SupportsIndex

import numpy as np
import numpy.typing as npt

from outcore import _core
from outcore._base.arguments import count
from outcore._base.sizes import format_size
from outcore._base.times import format_time
from outcore._base.types import DType, NDArray, Scalar
from outcore._lazy.array import Array
from outcore._lazy.carded import Carded, NamedFact
from outcore._lazy.node import Operand, node
from outcore._run.checkpoints import Checkpoints
from outcore._run.driver import Driver
from outcore._run.holding import Holder
from outcore._session.record import Outcome
from outcore.errors import ArgumentError, DTypeError, ShapeError

StepFunction = Callable[..., object]
Extras = list[Any]  # numbers, and lazy arrays of one element
Scalars = dict[str, Any]  # what a step gives beside the state: numbers, or lazy arrays of one element, by name


class Loop(Carded, tuple[Array, ...]):
    """The state that `iterate` arrived at, as a tuple of arrays, and how it got there.

    `state` is the state as it was given (one array or a tuple), `iterations` how many steps ran, `converged` whether
    `until` ended the loop. `history` has one NumPy array per named scalar, with a value per step, `outcomes` what each
    step read, wrote and took, `plan_seconds` the time spent on planning all of them.
    """

    state: Any
    iterations: int
    converged: bool
    history: dict[str, NDArray]
    outcomes: tuple[Outcome, ...]
    plan_seconds: float

    def _card_facts(self) -> list[NamedFact]:
        moved = [sum(part.bytes_read for part in self.outcomes), sum(part.bytes_written for part in self.outcomes)]
        ended = "the condition held" if self.converged else "the most that were asked for"
        facts: list[NamedFact] = [(f"state {place}", f"{part.shape} {part.dtype}") for place, part in enumerate(self)]
        facts += [("iterations", f"{self.iterations:,}: {ended}")]
        facts += [(name, f"{values[-1]:.6g} in the end") for name, values in self.history.items() if len(values)]
        return [
            *facts,
            ("moved", f"{format_size(moved[0])} read, {format_size(moved[1])} written"),
            ("planning", format_time(self.plan_seconds)),
        ]

    @property
    def _expr(self) -> _core.Expr:
        """The node of the only array, so that functions of arrays take the result of a loop over one state."""
        if len(self) != 1:
            raise ArgumentError(f"the state of this loop has {len(self)} arrays; use loop[0], loop[1], … one at a time")
        return self[0]._expr


def iterate(
    step: StepFunction,
    state: Operand | tuple[Operand, ...] | list[Operand],
    *,
    until: Callable[..., object] | None = None,
    max_iter: SupportsIndex,
    checkpoint: SupportsIndex | None = None,
    progress: bool | None = None,
) -> Loop:
    """Repeats `state = step(state)` until a condition holds, at most `max_iter` times: one program per step.

    Parameters
    ----------
    step
        Maps the state to the next one, as lazy arrays of the same shapes and types. A state of several arrays is passed
        as so many arguments, `step(W, H)`, or as one tuple where `step` takes one argument only. It may return named
        scalars beside the state, `return (W, H), {"loss": loss}`: they are computed in the same program, shown in the
        progress line and gathered in `history`.
    state
        One array or a tuple of arrays to start from.
    until
        `until(old, new, iteration)` gives a lazy 0-d array or a bool, with states as `step` returns them and iterations
        counted from 1. It is computed in the step's own program, so that it costs no sweep of its own. The loop ends
        with the step for which it is true.
    max_iter
        Most steps to run; at least 1.
    checkpoint
        Store the state every so many steps, so that the same call goes on from there after a kill, a power loss or
        Ctrl-C, also under another memory limit, number of threads or policy. The same call: equal steps over equal
        files from an equal state; a changed one begins anew. Arrays that only this process has, as those in memory and
        those that another library reads, are equal where their values are. The step is known by what it gives first,
        for which it is called once more where the loop goes on: what it decides by numbers of later steps, `until` and
        `max_iter` do not tell loops apart. I/O: one write of the state each time, and at the beginning one read of
        arrays of this process; `outcore clean` lists what can be gone on with.
    progress
        Whether to show a live line; None where someone watches.

    Returns
    -------
    Loop
        A tuple of the last state's arrays with `state`, `history`, `iterations`, `converged`, `outcomes` and
        `plan_seconds`.

    Raises
    ------
    ShapeError, DTypeError
        A step whose arrays do not have the shapes or types of those before; a scalar or condition that is none.
    MemoryLimitError
        A step that cannot fit, before it runs.
    ArgumentError
        With `checkpoint`, a step that calls a function of Python over blocks: no other process can tell it from others.

    Notes
    -----
    I/O: each step is planned when the state before it is known. Tiles of inputs stay in memory from step to step, as
    many as fit, so steps after the first read what does not fit only. The state is held in memory where it takes no
    more than a third of the budget, else its largest arrays are written to the session's scratch folder, and read from
    there, for as long as something refers to them.

    The shape of the loop is that of `jax.lax.while_loop` and `jax.lax.scan`; a plain Python loop around `compute` keeps
    tiles and values just so.

    Examples
    --------
    >>> import outcore as oc
    >>> def newton(x):
    ...     return (x + 2 / x) / 2
    >>> root = oc.iterate(newton, oc.ones(()), until=lambda old, new, k: oc.abs(new - old) < 1e-12, max_iter=50)
    >>> float(root.state), root.converged
    (1.414213562373095, True)
    """
    count("iterate", 1, max_iter=max_iter)
    most = max_iter.__index__()
    if until is not None and not callable(until):
        raise ArgumentError(f"iterate: until={until!r}; a function of (old, new, iteration) is right")
    if until is not None and not _takes_three(until):
        raise ArgumentError(f"iterate: until takes (old, new, iteration), and not {inspect.signature(until)}")
    single = not isinstance(state, (tuple, list))
    arrays = tuple(Array(node(part)) for part in ([state] if single else state))  # type: ignore[union-attr]
    if not arrays:
        raise ArgumentError("iterate: the state has no arrays")
    spread = not single and (len(arrays) == 1 or _takes_several(step))
    outcomes: list[Outcome] = []
    plan_seconds, converged = 0.0, False
    saved, first = None, None
    if checkpoint is not None:
        first = _parts(step(*arrays) if spread else step(arrays[0] if single else arrays), arrays, single)
        saved = Checkpoints.hold(checkpoint, arrays, first)
    with Driver("", saved).running(progress, is_bound=until is not None) as driver:
        last = driver.restore(lambda state: state.step <= most and _kinds(state.arrays) == _kinds(arrays))
        if last is not None:
            arrays, first = last.arrays, None
        holder = Holder.of_state(arrays)
        while driver.step < most and not converged:
            driver.step += 1
            driver.show(most)
            start = arrays[0] if single else arrays
            new, scalars = first or _parts(step(*arrays) if spread else step(start), arrays, single)
            first = None
            stop = None if until is None else until(start, new[0] if single else new, driver.step)
            old, last = None if last is not None else arrays, None
            arrays, beside, seconds = _held(holder, old, new, [*scalars.values(), stop])
            driver.record({name: _scalar(name, value) for name, value in zip(scalars, beside, strict=False)})
            converged = stop is not None and bool(_scalar("until", beside[-1]))
            outcomes.append(holder.outcome)
            plan_seconds += seconds
            if driver.step < most and not converged:
                driver.save(arrays)
    result = Loop(arrays)
    result.state = arrays[0] if single else arrays
    result.iterations = driver.step
    result.converged = converged
    result.history = {name: np.asarray(values) for name, values in driver.history.items()}
    result.outcomes = tuple(outcomes)
    result.plan_seconds = plan_seconds
    return result


def _kinds(arrays: tuple[Array, ...]) -> list[tuple[tuple[int, ...], DType]]:
    return [(array.shape, array.dtype) for array in arrays]


def _takes_three(until: Callable[..., object]) -> bool:
    """Whether a function can be called with three arguments, as far as that can be told."""
    try:
        inspect.signature(until).bind(None, None, None)
    except TypeError:
        return False
    except ValueError:  # it does not tell
        return True
    return True


def _takes_several(step: StepFunction) -> bool:
    """Whether a state of several arrays is passed as so many arguments."""
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return True
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return True
    required = [part for part in parameters if part.kind in positional and part.default is inspect.Parameter.empty]
    return len(required) != 1


def _parts(returned: Any, old: tuple[Array, ...], single: bool) -> tuple[tuple[Array, ...], Scalars]:
    """The next state, and the scalars beside it, of what a step returned."""
    scalars: Scalars = {}
    if isinstance(returned, (tuple, list)) and returned and isinstance(returned[-1], Mapping):
        scalars = dict(returned[-1])
        returned = returned[:-1]
        if len(returned) == 1 and (single or isinstance(returned[0], (tuple, list))):
            returned = returned[0]
    parts: Iterable[object] = [returned] if single and not isinstance(returned, (tuple, list)) else returned
    if not isinstance(parts, (tuple, list)) or len(parts) != len(old):
        count = len(parts) if isinstance(parts, (tuple, list)) else 1
        raise ShapeError(f"iterate: the step returned {count} arrays, and the state has {len(old)}")
    new = tuple(Array(node(part)) for part in parts)
    for place, (before, after) in enumerate(zip(old, new, strict=True)):
        if before.shape != after.shape:
            raise ShapeError(f"iterate: array {place} of the state: shapes {before.shape} and {after.shape} differ")
        if before.dtype != after.dtype:
            raise DTypeError(f"iterate: array {place} of the state: types {before.dtype} and {after.dtype} differ")
    return new, scalars


def _scalar(name: str, value: npt.ArrayLike) -> Scalar:
    array = np.asarray(value)
    if array.size != 1:
        raise ShapeError(f"iterate: {name} has shape {array.shape}; it must be one value")
    scalar: Scalar = array.reshape(()).item()
    return scalar


def _held(
    holder: Holder, old: tuple[Array, ...] | None, new: tuple[Array, ...], beside: Extras
) -> tuple[tuple[Array, ...], Extras, float]:
    """The values of the next state and of what is beside it, and the seconds of planning.

    An array that a step hands on as it was needs no copy, unless the state before is not `old` but in a checkpoint.
    """
    due = [place for place in range(len(new)) if old is None or new[place]._expr.id != old[place]._expr.id]
    lazy = [place for place, value in enumerate(beside) if isinstance(value, Array)]
    begin = time.perf_counter()
    held, results = holder.held([new[place] for place in due], [beside[place] for place in lazy], due)
    seconds = time.perf_counter() - begin - holder.outcome.seconds
    state, values = list(new), list(beside)
    for place, array in zip(due, held, strict=True):
        state[place] = array
    for place, value in zip(lazy, results, strict=True):
        values[place] = value
    return tuple(state), values, seconds


__all__ = ["Loop", "iterate"]
