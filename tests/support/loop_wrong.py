"""Loop programs that are refused, each with the line and the reason."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HEAD = """
import math
import numpy as np
import outcore as oc
OUTSIDE = np.zeros(4)
LENGTH = 4

"""


class Wrong(NamedTuple):
    """A body with its parameters; the line that ends with a comment is the one that is refused."""

    parameters: str
    body: str
    reason: str
    arguments: tuple[Any, ...] | None = None  # of the call that is refused; None where decoration is


A4, B45 = np.zeros(4), np.zeros((4, 5))
WRONG = {
    "product of variables": Wrong(
        "a",
        """
        for i in range(4):
            for j in range(4):
                a[i * j] = 1.0  #
        return a
        """,
        "`i * j` is not affine, and a subscript must be: a product of loop variables",
    ),
    "subscript by data": Wrong(
        "a, b",
        """
        for i in range(4):
            a[b[i]] = 1.0  #
        return a
        """,
        "`b[i]` depends on data, and a subscript must follow from loop variables and integers alone",
    ),
    "subscript by a local number": Wrong(
        "a, b",
        """
        for i in range(4):
            t = b[i]
            a[t + 1] = 1.0  #
        return a
        """,
        "`t` is a local number that depends on data or is not affine",
    ),
    "quotient in a subscript": Wrong(
        "a",
        """
        for i in range(4):
            a[i] = a[6 // (i + 2)]  #
        return a
        """,
        "`6 // (i + 2)` is not affine, and a subscript must be: a floor division by a loop variable",
    ),
    "bound by data": Wrong(
        "a",
        """
        for i in range(int(a[0])):  #
            a[i] = 1.0
        return a
        """,
        "`a[0]` depends on data, and a bound of a loop must follow from loop variables and integers alone",
    ),
    "step by a variable": Wrong(
        "a",
        """
        for i in range(1, 4):
            for j in range(0, 4, i):  #
                a[j] = 1.0
        return a
        """,
        "the step `i` depends on a loop variable",
    ),
    "steps from a largest bound": Wrong(
        "a, k",
        """
        for i in range(4):
            for j in range(max(0, i - k), 4, 2):  #
                a[j] = 1.0
        return a
        """,
        "`max(0, i - k)` is one number or another by loop variables, and steps of 2 go on from it: write an `if`",
        (A4, 2),
    ),
    "smallest of lower bounds": Wrong(
        "a, k",
        """
        for i in range(4):
            for j in range(min(k, i), 4):  #
                a[j] = 1.0
        return a
        """,
        "bounds by loop variables are the largest of several lower ones and the smallest of several upper ones",
        (A4, 2),
    ),
    "band beyond its array": Wrong(
        "a, k",
        """
        for i in range(4):
            for j in range(max(0, i - k), min(i + k + 1, 5)):
                a[i] = a[j]  #
        return a
        """,
        "subscript `j` of `a` goes from 0 to 4, and axis 0 has length 4",
        (A4, 2),
    ),
    "largest of data as a bound": Wrong(
        "a",
        """
        for i in range(4):
            for j in range(min(i, int(a[i]))):  #
                a[j] = 1.0
        return a
        """,
        "`a[i]` depends on data, and a bound of a loop must follow from loop variables and integers alone",
    ),
    "smallest of indices as a subscript": Wrong(
        "a",
        """
        for i in range(4):
            below = max(0, i - 1)
            a[i] = a[below]  #
        return a
        """,
        "`below` is the smallest or largest of several numbers, and a subscript must be affine; write an `if`",
    ),
    "if on data": Wrong(
        "a",
        """
        for i in range(4):
            if a[i] > 0.0:  #
                a[i] = 0.0
        return a
        """,
        "write a conditional expression: x if c else y",
    ),
    "remainder in a condition": Wrong(
        "a",
        """
        for i in range(4):
            if i % (i + 1) == 0:  #
                a[i] = 0.0
        return a
        """,
        "`i % (i + 1)` is not affine, and the condition of an `if` must be: a remainder by a loop variable",
    ),
    "while": Wrong("a", "while a[0] > 0:  #\n    a[0] -= 1\nreturn a", "`while` is not taken"),
    "break": Wrong("a", "for i in range(4):\n    break  #\nreturn a", "`break` is not taken"),
    "continue": Wrong("a", "for i in range(4):\n    continue  #\nreturn a", "write an `if` around the statements"),
    "try": Wrong("a", "try:  #\n    a[0] = 1\nfinally:\n    pass\nreturn a", "`try` is not taken"),
    "with": Wrong("a", "with open('a'):  #\n    a[0] = 1\nreturn a", "`with` is not taken"),
    "nested function": Wrong("a", "def f():  #\n    pass\nreturn a", "functions inside of a loop program"),
    "lambda": Wrong("a", "f = lambda x: x  #\nreturn a", "lambdas are not taken"),
    "comprehension": Wrong("a", "a[0] = max([x for x in range(3)])  #\nreturn a", "comprehensions are not taken"),
    "generator expression": Wrong("a", "a[0] = max(x for x in range(3))  #\nreturn a", "generators are not taken"),
    "generator": Wrong("a", "yield a  #\nreturn a", "generators are not taken"),
    "global": Wrong("a", "global b  #\nreturn a", "`global` is not taken"),
    "import": Wrong("a", "import os  #\nreturn a", "`import` is not taken: import above the function"),
    "slice": Wrong("a, b", "for i in range(4):\n    a[i] = b[i, :]  #\nreturn a", "slices stand on both sides"),
    "whole array": Wrong("a", "for i in range(4):\n    a[i] = a * 2  #\nreturn a", "stands without subscripts"),
    "rebound array": Wrong("a", "a = 3  #\nreturn a", "the array `a` is rebound"),
    "exchange in a condition": Wrong(
        "a, b",
        """
        for t in range(4):
            if t > 1:
                a, b = b, a  #
            a[t] = b[t]
        return a
        """,
        "`a` takes another array within a condition: arrays are exchanged in each iteration, or in none",
    ),
    "array without a name": Wrong(
        "a, b",
        """
        for t in range(4):
            a[t] = b[t]
            a = b  #
        return a
        """,
        "`a` takes an array whose other names keep it: arrays of a loop are exchanged, as `u, v = v, u`",
    ),
    "exchange in a loop of no fixed length": Wrong(
        "a, b",
        """
        for i in range(4):
            for j in range(i):  #
                a[j] = b[i]
                a, b = b, a
        return a
        """,
        "exchanged in the loop over `j`, whose number of iterations depends on a loop around",
        (A4, A4 + 1),
    ),
    "exchange of many arrays": Wrong(
        "a, b, c, d, e, f, g, h",
        """
        for t in range(4):  #
            a[t] = b[t] + c[t] + d[t] + e[t] + f[t] + g[t] + h[t]
            a, b, c, d, e, f, g, h = b, c, a, e, f, g, h, d
        return a
        """,
        "exchanged in the loop over `t` so that more than 12 iterations bring them back",
        tuple(np.zeros(4) for _ in range(8)),
    ),
    "exchange of unlike arrays": Wrong(
        "a, b",
        """
        for t in range(4):
            a[3] = 1.0  #
            a, b = b, a
        return a, b
        """,
        "subscript `3` of `a` is 3, and axis 0 has length 3",
        (A4, np.zeros(3)),
    ),
    "name of an exchange beyond its loop": Wrong(
        "a, b",
        """
        for t in range(4):
            c = a
            a = b
            b = c
        c[0] = 1.0  #
        return a, b
        """,
        "`c` is another name of an array within a loop, and used beyond it",
    ),
    "name of an array and of a number": Wrong(
        "a, b",
        """
        c = 1.0
        for t in range(4):
            a[t] = c  #
            c = a
            a = b
            b = c
        return a, b
        """,
        "`c` is the name of an array, and of a number",
    ),
    "array as an element": Wrong(
        "a, b", "a[0], b[0] = a, b  #\nreturn a, b", "the array `a` stands without subscripts"
    ),
    "array as a number with a name": Wrong(
        "a, n", "h = n  #\na[0] = h\nreturn a", "`n` stands without subscripts", (A4, A4 + 1)
    ),
    "unknown name": Wrong("a", "for i in range(4):\n    a[i] = missing + 1  #\nreturn a", "`missing` is not known"),
    "unknown function": Wrong("a", "for i in range(4):\n    a[i] = np.sum(a[i])  #\nreturn a", "the function `np.sum`"),
    "function that is missing": Wrong("a", "a[0] = np.sqroot(a[0])  #\nreturn a", "`np` has no `sqroot`"),
    "method": Wrong("a", "a[0] = a[1].sum()  #\nreturn a", "the function `a[1].sum` is not taken"),
    "array from outside": Wrong("a", "a[0] = OUTSIDE  #\nreturn a", "make it a parameter"),
    "element of an array from outside": Wrong("a", "a[0] = OUTSIDE[1]  #\nreturn a", "make it a parameter"),
    "no return": Wrong("a", "a[0] = 1", "has no `return` at its end"),
    "return of a number": Wrong("a", "n = 3\nreturn n  #", "the names of arrays are returned"),
    "return in a loop": Wrong("a", "for i in range(4):\n    return a  #\nreturn a", "at the end of the function alone"),
    "statement without effect": Wrong("a", "a[0] + 1  #\nreturn a", "has no effect"),
    "sum without a first value": Wrong(
        "a",
        """
        for i in range(4):
            s += a[i]  #
        return a
        """,
        "`s` is used before it has a value: assign it before the loop",
    ),
    "number beyond a loop without iterations": Wrong(
        "a, n",
        """
        for i in range(n):
            t = a[i]
        a[0] = t  #
        return a
        """,
        "`t` may be used before it has a value, where a branch is not taken or a loop has no iterations",
        (A4, 0),
    ),
    "number beyond a loop that is empty at times": Wrong(
        "a",
        """
        for i in range(4):
            for j in range(i):
                t = a[j]
            a[i] = t  #
        return a
        """,
        "`t` may be used before it has a value",
        (A4,),
    ),
    "number of one branch": Wrong(
        "a",
        """
        for i in range(4):
            if i > 2:
                t = a[i]
            a[i] = t  #
        return a
        """,
        "`t` may be used before it has a value",
        (A4,),
    ),
    "number of two types": Wrong(
        "a, x",
        """
        s = 0.1
        for i in range(4):
            a[i] = s  #
            s = s + x[i]
        return a
        """,
        "`s` is Python's 0.1 and float32 by turns, and `a[i] = s` depends on which: begin with a number of the type",
        (A4, np.ones(4, np.float32)),
    ),
    "quotient of a number of two types": Wrong(
        "a, x",
        """
        s = 1
        for i in range(4):
            a[i] = x[i] / s  #
            s = s * 0.5
            s = s + a[i]
        return a
        """,
        "`s` is Python's 1 and float64 by turns",
        (A4, np.ones(4, np.float32)),
    ),
    "result of two types": Wrong(
        "a, n",
        """
        s = 1
        for i in range(4):
            if i > n:
                s = s + a[i]
        return s  #
        """,
        "`s` is Python's 1 and float64 by turns, and `return s` depends on which",
        (A4, 1),
    ),
    "subscript by a number that is carried": Wrong(
        "a",
        """
        k = 0
        for i in range(2):
            a[k] = 1.0  #
            k += 2
        return a
        """,
        "`k` is a local number that depends on data or is not affine",
    ),
    "bound by a number that is carried": Wrong(
        "a",
        """
        k = 0
        for i in range(2):
            for j in range(k):  #
                a[j] = 1.0
            k += 2
        return a
        """,
        "`k` is a local number that depends on data or is not affine, and a bound of a loop must follow",
    ),
    "variable before its loop": Wrong(
        "a",
        "for i in range(2):\n    a[i] = j  #\n    for j in range(2):\n        a[j] = 1\nreturn a",
        "`j` is assigned by a loop and used beyond it",
    ),
    "function of math": Wrong(
        "a", "for i in range(4):\n    a[i] = math.erf(a[i])  #\nreturn a", "not taken: of the module math, acos, "
    ),
    "variable beyond its loop": Wrong("a", "for i in range(4):\n    a[i] = i\na[i] = 0  #\nreturn a", "used beyond it"),
    "variable assigned": Wrong("a", "for i in range(4):\n    i = 2  #\nreturn a", "`i` is the variable of a loop"),
    "variable of a loop around": Wrong(
        "a",
        "for i in range(4):\n    for i in range(4):  #\n        a[i] = 1\nreturn a",
        "the variable of a loop around",
    ),
    "loop over an array": Wrong("a", "for x in a:  #\n    a[0] = 1\nreturn a", "loops are over `range(...)`"),
    "else of a loop": Wrong("a", "for i in range(4):\n    a[i] = 1\nelse:\n    a[0] = 1  #\nreturn a", "`else` of"),
    "array in a loop": Wrong(
        "a", "for i in range(4):\n    b = oc.zeros(3)  #\n    a[i] = b[0]\nreturn a", "inside of a loop or a branch"
    ),
    "shape by data": Wrong("a", "b = oc.zeros(int(a[0]))  #\nreturn b", "must be known before loops"),
    "product of matrices": Wrong("a", "a[0] = a[1] @ a[2]  #\nreturn a", "a product of matrices is three loops"),
    "two targets": Wrong("a", "a[0] = a[1] = 1  #\nreturn a", "several `=` in one statement"),
    "unlisted parameters": Wrong("a, *b", "return a", "`b`: parameters are listed by name"),
    "deep nest": Wrong(
        "a",
        "\n".join(f"{'    ' * depth}for i{depth} in range(2):{'  #' * (depth == 8)}" for depth in range(9))
        + f"\n{'    ' * 9}a[0] = 1\nreturn a",
        "nested more than 8 deep",
    ),
    "write out of bounds": Wrong(
        "a",
        "for i in range(a.shape[0]):\n    a[i + 1] = 1.0  #\nreturn a",
        "subscript `i + 1` of `a` goes from 1 to 4, and axis 0 has length 4",
        (A4,),
    ),
    "read out of bounds": Wrong(
        "b",
        "for i in range(4):\n    for j in range(i + 1, 5):\n        b[i, j] = b[j, i]  #\nreturn b",
        "subscript `j` of `b` goes from 1 to 4, and axis 0 has length 4",
        (B45,),
    ),
    "negative subscripts": Wrong(
        "a",
        "for i in range(4):\n    a[i - 4] = 1.0  #\nreturn a",
        "goes from -4 to -1, and axis 0 has length 4; a subscript that varies counts from the front: add 4",
        (A4,),
    ),
    "partly negative subscripts": Wrong(
        "a",
        "for i in range(4):\n    a[i] = a[i - 1]  #\nreturn a",
        "goes from -1 to 2, and axis 0 has length 4; a subscript that varies does not count from the end",
        (A4,),
    ),
    "constant out of bounds": Wrong("a", "a[4] = 1.0  #\nreturn a", "is 4, and axis 0 has length 4", (A4,)),
    "wrong number of subscripts": Wrong(
        "b", "b[0] = 1.0  #\nreturn b", "`b[0]` has 1 subscripts, and `b` has 2 axes", (B45,)
    ),
    "float bound": Wrong(
        "a, n", "for i in range(n):  #\n    a[i] = 1\nreturn a", "`n` is 2.5, and a bound of a loop", (A4, 2.5)
    ),
    "step of zero": Wrong("a, n", "for i in range(0, 4, n):  #\n    a[i] = 1\nreturn a", "the step `n` is 0", (A4, 0)),
    "width of indices": Wrong(
        "a, n",
        "for i in range(4):\n    if i * n > n:  #\n        a[i] = 1\nreturn a",
        "index arithmetic goes beyond 63 bits",
        (A4, 1 << 62),
    ),
    "one array twice": Wrong(
        "a, b", "for i in range(4):\n    a[i] = b[3 - i]\nreturn a", "are the same array, and one is written", (A4, A4)
    ),
    "overlapping views": Wrong(
        "a, b",
        "for i in range(4):\n    a[i] = b[i]\nreturn a",
        "`a` and `b` are the same array",
        (np.zeros(9)[:5], np.zeros(9)),
    ),
    "number as an array": Wrong("a", "a[0] = 1\nreturn a", "the argument `a` is a number", (3.0,)),
    "array as a number": Wrong("a, n", "a[0] = n  #\nreturn a", "`n` stands without subscripts", (A4, A4 + 1)),
    "complex into float": Wrong("a", "a[0] = a[1] * 1j  #\nreturn a", "take .real or .imag", (A4,)),
    "complex number into float": Wrong("a", "a[0] = 1j  #\nreturn a", "the complex number 1j", (A4,)),
    "number beyond the type": Wrong("a", "a[0] = 300  #\nreturn a", "out of bounds", (np.zeros(4, "i1"),)),
    "index beyond the type": Wrong(
        "a",
        "for i in range(4):\n    a[i] = 100 * i  #\nreturn a",
        "integers from 0 to 300 are out of bounds for int8",
        (np.zeros(4, "i1"),),
    ),
    "operator that types lack": Wrong("a", "a[0] = a[1] & 1  #\nreturn a", "`a[1] & 1`", (A4,)),
    "division by zero": Wrong("a, n", "h = 1 / n  #\na[0] = h\nreturn a", "division by zero", (A4, 0)),
    "negative length": Wrong("a, n", "b = np.zeros(n)  #\nreturn b", "cannot be negative", (A4, -1)),
}
VIEW = np.zeros(9)
WRONG["overlapping views"] = WRONG["overlapping views"]._replace(arguments=(VIEW[:5], VIEW[3:]))


def written(folder: Path, wrong: Wrong) -> tuple[Path, int, Callable[..., Any]]:
    """A file with the program, the line that is refused (that of `def` where none is marked), and the function."""
    body = textwrap.indent(textwrap.dedent(wrong.body).strip("\n"), "    ")
    text = f"{HEAD}def program({wrong.parameters}):\n{body}\n"
    path = folder / "wrong.py"
    path.write_text(text)
    definition = HEAD.count("\n") + 1
    marked = next((n for n, line in enumerate(text.splitlines(), 1) if line.endswith("#")), definition)
    spec = importlib.util.spec_from_file_location("wrong", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, marked, module.program
