"""Fits that are killed on their way: what is fitted, and the process that kills itself after so many programs."""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import outcore as oc
from outcore import learn
from outcore._session.session import Session
from support.running import session

FITS: dict[str, Any] = {
    "KMeans": learn.KMeans(9, n_init=2, tol=0, random_state=0),
    "MiniBatchKMeans": learn.MiniBatchKMeans(4, max_iter=6, max_no_improvement=None, batch_size=40, random_state=0),
    "GaussianMixture": learn.GaussianMixture(3, n_init=2, max_iter=6, tol=0, random_state=0),
    "LogisticRegression": learn.LogisticRegression(tol=1e-8),
    "LogisticRegression, absolute values": learn.LogisticRegression(l1_ratio=0.5, tol=1e-8),
    "LogisticRegression, newton-cg": learn.LogisticRegression(solver="newton-cg"),
    "LogisticRegression, newton-cholesky": learn.LogisticRegression(solver="newton-cholesky", tol=1e-12),
    "SGDClassifier": learn.SGDClassifier("log_loss", penalty="elasticnet", max_iter=6, tol=None, random_state=0),
    "SGDRegressor": learn.SGDRegressor(max_iter=6, tol=None, random_state=0),
    "NMF": learn.NMF(3, init="random", max_iter=8, tol=0, random_state=0),
    "PCA": learn.PCA(3, svd_solver="randomized", iterated_power=5, random_state=0),
    "TruncatedSVD": learn.TruncatedSVD(3, algorithm="randomized", random_state=0),
}


def fit(name: str, folder: Path, checkpoint: int | None) -> Any:
    """The estimator fitted to the files in a folder."""
    model = FITS[name].set_params(checkpoint=checkpoint)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(oc.open(folder / "x.npy"), oc.open(folder / "y.npy"))


def kill_in(programs: int) -> None:
    """SIGKILL, as the kernel sends it, when so many programs have run."""
    run, done = Session.run, 0

    def counted(*given: Any) -> Any:
        nonlocal done
        if done == programs:
            os.kill(os.getpid(), signal.SIGKILL)
        done += 1
        return run(*given)

    Session.run = counted  # type: ignore[method-assign]


def main(folder: str, scratch: str, moments: str) -> None:
    """Each fit in a process of its own, which is killed after as many programs as said."""
    for name, programs in json.loads(moments).items():
        child = os.fork()
        if child == 0:
            kill_in(programs)
            with session(Path(scratch)):
                fit(name, Path(folder), checkpoint=1)
            os._exit(0)  # it should not come to this
        _, status = os.waitpid(child, 0)
        print(json.dumps([name, os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL]), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
