"""Loop programs that exchange arrays from step to step: plain functions over NumPy arrays, and arguments for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.loop_programs import FixedCase


def heat(u: Any, v: Any, steps: Any) -> Any:
    """The usual steps of Jacobi: read one array, write another, and exchange them."""
    n, m = u.shape
    for t in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                v[i, j] = 0.25 * (u[i, j - 1] + u[i, j + 1] + u[i - 1, j] + u[i + 1, j]) + t
        u, v = v, u
    return u, v


def waves(before: Any, now: Any, speed: Any, steps: Any) -> Any:
    """Three arrays in turns, one of them made here."""
    after = np.zeros_like(now)
    n, m = now.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                bend = now[i, j - 1] + now[i, j + 1] + now[i - 1, j] + now[i + 1, j] - 4 * now[i, j]
                after[i, j] = 2 * now[i, j] - before[i, j] + speed[i, j] * bend
        before, now, after = now, after, before
    return now


def rows_in_turns(previous: Any, current: Any, s: Any, t: Any, best: Any) -> Any:
    """An alignment by two rows alone, backwards along one sequence, with a largest score."""
    score = 0
    for i in range(len(s) - 1, -1, -1):
        for j in range(1, len(t) + 1):
            step = previous[j - 1] + (3 if s[i] == t[j - 1] else -3)
            current[j] = max(0, step, previous[j] - 2, current[j - 1] - 2)
            score = max(score, current[j])
        kept = previous
        previous = current
        current = kept
        best[i] = score
    return previous, best


def exchanges_within(u: Any, v: Any, rounds: Any, steps: Any) -> Any:
    """Exchanges of a loop and of the loop around, with steps of two and sums that a name carries."""
    total = 0.0
    for r in range(rounds):
        for k in range(steps, 0, -2):
            for i in range(1, len(u)):
                v[i] = 0.5 * u[i] - 0.25 * u[i - 1] + k
            u, v = v, u
        for i in range(len(v)):
            total = 0.5 * total + v[i]
            v[i] = total + r
        v, u = u, v
    return u, v


EXCHANGES = {
    "heat": FixedCase(heat, lambda random, n=18: (*(random.random((n, n - 3)) for _ in range(2)), 5)),
    "heat, two steps": FixedCase(heat, lambda random, n=18: (*(random.random((n, n - 3)) for _ in range(2)), 2)),
    "heat, one step": FixedCase(heat, lambda random: (*(random.random((12, 9)) for _ in range(2)), 1)),
    "heat of two types": FixedCase(
        heat, lambda random: (random.random((12, 9)), random.random((12, 9)).astype("f4"), 5)
    ),
    **{
        f"waves, {steps} steps": FixedCase(
            waves, lambda random, steps=steps: (*(random.random((11, 12)) for _ in range(3)), steps)
        )
        for steps in (5, 7)
    },
    "rows in turns": FixedCase(
        rows_in_turns,
        lambda random: (
            *(np.zeros(20, int) for _ in range(2)),
            *(random.integers(0, 4, n) for n in (15, 19)),
            np.zeros(15, int),
        ),
    ),
    **{
        f"exchanges within, {rounds} by {steps}": FixedCase(
            exchanges_within, lambda random, rounds=rounds, steps=steps: (*random.random((2, 23)), rounds, steps)
        )
        for rounds, steps in ((3, 5), (4, 9), (1, 4))
    },
}
