"""The course of a fit: killed and gone on with to the same bits, its objective, and data that is refused."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.fits import FITS, fit
from support.killing import ROOT
from support.running import session

import outcore as oc
from outcore import learn
from outcore._run.driver import Driver
from outcore.errors import ArgumentError


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Positive data in four clusters, and the two classes that they make."""
    folder = tmp_path_factory.mktemp("table")
    random = np.random.default_rng(0)
    which = random.integers(0, 4, 400)
    x = random.random((4, 6))[which] * 6 + random.random((400, 6)) * 3
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", (which + (random.random(400) < 0.2) > 1).astype(np.int64))
    return folder


def fitted(model: Any) -> dict[str, bytes]:
    """The bytes of everything that a fit found."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    found |= {f"history of {name}": values for name, values in found.pop("history_", {}).items()}
    return {
        name: np.asarray(value.compute() if isinstance(value, oc.Array) else value).tobytes()
        for name, value in found.items()
    }


@pytest.fixture(scope="module")
def killed(table: Path, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Whole fits, how many programs each takes, and the scratch folder of fits killed after two thirds of those."""
    scratch = tmp_path_factory.mktemp("scratch")
    whole, programs = {}, {}
    for name in FITS:
        whole[name] = fitted(fit(name, table, None))
        with session(scratch), oc.profile() as profile:
            assert fitted(fit(name, table, 1)) == whole[name]
        programs[name] = len(profile.outcomes)
    moments = json.dumps({name: count * 2 // 3 for name, count in programs.items()})
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")])
    said = subprocess.run(
        [sys.executable, "-m", "support.fits", str(table), str(scratch), moments],
        env=os.environ | {"PYTHONPATH": paths},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert [json.loads(line) for line in said.splitlines()] == [[name, True] for name in FITS]
    return whole, programs, scratch


@pytest.mark.parametrize("name", FITS)
def test_a_killed_fit_goes_on_to_the_same_bits(killed: Any, table: Path, name: str) -> None:
    whole, programs, scratch = killed
    with session(scratch), oc.profile() as profile:
        model = fit(name, table, 1)
    assert fitted(model) == whole[name]
    assert len(profile.outcomes) < programs[name], "it began anew"
    assert len(next(iter(model.history_.values()))) > 1


def test_a_fit_that_ended_leaves_nothing(table: Path, tmp_path: Path) -> None:
    with session(tmp_path):
        for name in FITS:
            fit(name, table, 2)
        with pytest.raises(ArgumentError, match="checkpoint must be at least 1"):
            fit("KMeans", table, 0)
        left = [path for path in tmp_path.rglob("*") if "stages" in path.name and any(path.iterdir())]
    assert left == []


class StopError(Exception):
    """Ends a fit on its way."""


@contextmanager
def stopped_after(steps: int) -> Iterator[None]:
    """Ends the fit that is made here when it has told of so many steps."""
    told, count = Driver.tell, 0

    def counted(*given: Any, **objective: float) -> None:
        nonlocal count
        count += 1
        if count > steps:
            raise StopError
        told(*given, **objective)

    with pytest.MonkeyPatch.context() as patch, suppress(StopError):
        patch.setattr(Driver, "tell", counted)
        yield
        raise AssertionError("the fit came to its end")


@pytest.mark.parametrize("torn", [0, 1, 100])
def test_a_torn_journal_is_gone_on_with_before_the_tear(table: Path, tmp_path: Path, torn: int) -> None:
    with session(tmp_path):
        whole = fitted(fit("GaussianMixture", table, None))
        with stopped_after(5):
            fit("GaussianMixture", table, 1)
        (journal,) = tmp_path.rglob("results")
        os.truncate(journal, journal.stat().st_size - torn)
        assert fitted(fit("GaussianMixture", table, 1)) == whole


def test_other_data_or_parameters_begin_anew(table: Path, tmp_path: Path) -> None:
    with session(tmp_path):
        with stopped_after(2):
            fit("KMeans", table, 1)
        x = np.load(table / "x.npy")
        other = learn.KMeans(9, n_init=2, tol=0, random_state=1)
        expected = fitted(other.fit(x))
        assert fitted(other.set_params(checkpoint=1).fit(x)) == expected
        assert len(list(tmp_path.rglob("results"))) == 1


def test_a_seed_that_nobody_said_is_gone_on_with(table: Path, tmp_path: Path) -> None:
    x = oc.open(table / "x.npy")
    with session(tmp_path):
        model = learn.KMeans(9, tol=0, checkpoint=1)
        with stopped_after(2):
            model.fit(x)
        begun = [path.read_bytes() for path in tmp_path.rglob("results")]
        with stopped_after(2):
            model.fit(x)
        # Another seed would have drawn other rows, and swept the data for them.
        assert len(begun) == 1
        assert [path.read_bytes() for path in tmp_path.rglob("results")] == begun
        model.fit(x)


def test_objectives_improve_from_step_to_step(table: Path) -> None:
    falls = {"KMeans": "inertia", "LogisticRegression, newton-cholesky": "loss", "NMF": "error"}
    rises = {"GaussianMixture": "log_likelihood", "PCA": "captured", "TruncatedSVD": "captured"}
    for name, objective in (falls | rises).items():
        model = fit(name, table, None)
        steps = np.diff(model.history_[objective])
        least = -1e-9 * np.abs(model.history_[objective]).max()
        assert np.all((steps if name in rises else -steps) >= least), name
        rounds = getattr(model, "n_iter_", None)
        assert rounds is None or len(model.history_[objective]) == np.max(rounds)


def test_each_step_is_told(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    x, y = np.load(table / "x.npy"), np.load(table / "y.npy")
    learn.GaussianMixture(2, verbose=1, random_state=0).fit(x)
    learn.LogisticRegression(verbose=1).fit(x, y)
    learn.SGDRegressor(verbose=1, random_state=0).fit(x, y)
    said = capsys.readouterr().out
    for line in ("GaussianMixture: iteration 2, log likelihood", "Regression: iteration 1, loss", "epoch 1, loss"):
        assert line in said


REFUSING = [
    learn.KMeans(2),
    learn.MiniBatchKMeans(2, batch_size=50, init_size=50),
    learn.GaussianMixture(2),
    learn.LogisticRegression(),
    learn.LogisticRegression(solver="newton-cholesky"),
    learn.SGDClassifier(),
    learn.SGDRegressor(),
    learn.LinearRegression(),
    learn.LinearRegression(fit_intercept=False),
    learn.Ridge(),
    learn.NMF(2),
    learn.PCA(2),
    learn.PCA(2, svd_solver="randomized"),
    learn.IncrementalPCA(2),
    learn.TruncatedSVD(2),
    learn.TruncatedSVD(2, algorithm="randomized"),
]


@pytest.mark.parametrize("model", REFUSING, ids=str)
@pytest.mark.parametrize("place", [(3, 1), (250, 4)])
@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_lazy_data_that_is_not_finite_is_refused_by_its_place(
    table: Path, model: Any, place: Any, value: float
) -> None:
    x = np.load(table / "x.npy")
    x[place] = value
    said = rf"X contains {'NaN' if np.isnan(value) else 'infinity'}.*X\[{place[0]}, {place[1]}\]"
    with session(), pytest.raises(ValueError, match=said):
        model.fit(oc.rechunk(oc.asarray(x), (90, 6)), oc.open(table / "y.npy"))


def test_targets_and_weights_are_named_too(table: Path) -> None:
    x, y = np.load(table / "x.npy"), np.load(table / "y.npy") * 1.0
    weights = np.ones(400)
    y[77], weights[99] = np.nan, np.inf
    lazy = [oc.asarray(part) for part in (x, y, weights)]
    with pytest.raises(ArgumentError, match=r"y\[77, 0\] is not finite"):
        learn.Ridge().fit(lazy[0], lazy[1])
    with pytest.raises(ArgumentError, match=r"sample_weight\[99\]"):
        learn.KMeans(2).fit(lazy[0], sample_weight=lazy[2])
    with pytest.raises(ArgumentError, match="overflow although every element is finite"):
        learn.PCA(2).fit(lazy[0] * 1e200)
