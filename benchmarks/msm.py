"""Beside R's msm on its own data, heart transplants (cav): the same numbers, and how much sooner.

`python benchmarks/msm.py` needs Rscript with msm; with `--write` the numbers go to results/msm.json and into
docs/coming-from-msm.md. The data are GPL and never in this repository: R writes them to a
temporary folder at run time. Times are those of the fits alone, on one core each, compilation apart.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.engines import Threads

HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results/msm.json", HERE.parent / "docs/coming-from-msm.md"
START, END = "<!-- msm table -->\n", "\n<!-- end of msm table -->"
R = r"""
library(msm)
folder <- commandArgs(TRUE)[1]
write.csv(cav[, c("PTNUM", "years", "state", "firstobs")], file.path(folder, "cav.csv"), row.names = FALSE)
two_way <- rbind(c(0, 0.25, 0, 0.25), c(0.166, 0, 0.166, 0.166), c(0, 0.25, 0, 0.25), c(0, 0, 0, 0))
one_way <- rbind(c(0, 0.148, 0, 0.0171), c(0, 0, 0.202, 0.081), c(0, 0, 0, 0.126), c(0, 0, 0, 0))
errors <- rbind(c(0, 0.1, 0, 0), c(0.1, 0, 0.1, 0), c(0, 0.1, 0, 0), c(0, 0, 0, 0))
control <- list(fnscale = 4000, reltol = 1e-12, maxit = 10000)
number <- function(x) format(x, digits = 15, trim = TRUE, scientific = FALSE)
vector <- function(x) paste0("[", paste(number(x), collapse = ", "), "]")
table <- function(m) paste0("[", paste(apply(m, 1, vector), collapse = ", "), "]")
tell <- function(name, ...) {
  took <- system.time(
    model <- do.call(msm, list(
      state ~ years, subject = cav$PTNUM, data = cav, deathexact = 4, control = control, ...)))[["user.self"]]
  q <- qmatrix.msm(model, ci = "delta")
  text <- c(
    paste0("\"seconds\": ", took), paste0("\"minus2loglik\": ", number(model$minus2loglik)),
    paste0("\"generator\": ", table(q$estimates)), paste0("\"standard_errors\": ", table(q$SE)),
    paste0("\"p10\": ", table(pmatrix.msm(model, t = 10))),
    paste0("\"sojourn\": ", vector(sojourn.msm(model, ci = "none")[[1]])),
    paste0("\"total_time\": ", vector(totlos.msm(model, start = 1, tot = 10))))
  paste0("\"", name, "\": {", paste(text, collapse = ", "), "}")
}
parts <- c(paste0("\"msm\": \"", packageVersion("msm"), "\""),
  tell("labels", qmatrix = two_way), tell("misclassified", qmatrix = one_way, ematrix = errors, obstrue = cav$firstobs))
writeLines(paste0("{", paste(parts, collapse = ", "), "}"), file.path(folder, "msm.json"))
"""
TWO_WAY = {1: [2, 4], 2: [1, 3, 4], 3: [2, 4]}
ONE_WAY = {1: [2, 4], 2: [3, 4], 3: [4]}


def cav_panel(frame: pd.DataFrame, hidden: bool) -> jm.Panel:
    """Deaths are entries; behind a test that errs, the first state and deaths are known, and all others are alive."""
    frame = frame.assign(how=np.where(frame["state"] == 4, "entry", "snapshot"))
    about: dict[str, Any] = {"id": "PTNUM", "time": "years", "value": "state", "kind": "how"}
    if hidden:
        known = (frame["firstobs"] == 1) | (frame["state"] == 4)
        frame = frame.assign(true=frame["state"].where(known, 99), state=frame["state"].mask(known))
        about |= {"true_state": "true", "sets": {99: [1, 2, 3]}}
    return jm.Panel.from_frame(frame, **about)


def fits(frame: pd.DataFrame) -> dict[str, tuple[Callable[[], EM], jm.Panel, str]]:
    """Name → how to fit it, its panel, and what its likelihood says of the first state."""
    one = {"tol": 1e-12, "max_iter": 5000, "engine": Threads(1), "states": [1, 2, 3, 4]}
    given = jm.Structure(allowed=TWO_WAY, initial="given")
    errs = jm.Structure(
        allowed=ONE_WAY, initial={1: 1.0}, fixed={"emission": {(1, 3): 0.0, (3, 1): 0.0}}
    )  # fmt: skip
    labels, hidden = cav_panel(frame, False), cav_panel(frame, True)
    return {
        "labels": (lambda: EM(emission="direct", structure=given, **one).fit(labels), labels, "given"),
        "misclassified": (lambda: EM(emission="categorical", structure=errs, **one).fit(hidden), hidden, "estimated"),
    }


def compare() -> dict[str, Any]:
    """What msm and EM say of the same data, and how long each took."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "cav.R").write_text(R)
        subprocess.run(["Rscript", str(Path(folder, "cav.R")), folder], check=True, capture_output=True)
        told = json.loads(Path(folder, "msm.json").read_text())
        frame = pd.read_csv(Path(folder, "cav.csv"))
    found: dict[str, Any] = {"msm": told["msm"]}
    for name, (fit, panel, first) in fits(frame).items():
        fit()  # compiles
        begun = time.process_time()
        model = fit()
        seconds = time.process_time() - begun
        process, msm = model.process_, told[name]
        rates, theirs = process.rate_matrix, np.array(msm["generator"])
        errors, known = model.information(panel).standard_errors().values, np.array(msm["standard_errors"])
        free = (theirs > 1e-4) & (known > 0) & (errors > 0)
        found[name] = {
            "minus2loglik": {"msm": msm["minus2loglik"], "ours": -2 * model.log_likelihood(panel, first=first)},
            "largest difference": {
                "rates": np.abs(rates - theirs).max(),
                "P(10)": np.abs(process.transition_matrix(10.0).values - msm["p10"]).max(),
                "sojourns": np.abs(process.sojourn().values.ravel()[:3] - msm["sojourn"]).max(),
                "total time to 10": np.abs(process.total_time(10.0, start=1).values.ravel() - msm["total_time"]).max(),
                "standard errors, relative": np.abs(errors[free] / known[free] - 1).max(),
            },
            "seconds": {"msm": msm["seconds"], "ours": seconds, "ratio": msm["seconds"] / seconds},
        }
    return found


def markdown(found: dict[str, Any]) -> str:
    """The results as a table; the page in docs holds it."""
    lines = [
        f"| heart transplants (cav), msm {found['msm']} | states seen, deaths exact | misclassified |", "|---|---|---|"
    ]  # fmt: skip
    both = [found["labels"], found["misclassified"]]
    row = lambda name, cells: lines.append(f"| {name} | {' | '.join(cells)} |")  # noqa: E731
    row("-2 log-likelihood, msm", [f"{one['minus2loglik']['msm']:.6f}" for one in both])
    row("-2 log-likelihood, jumpmeans", [f"{one['minus2loglik']['ours']:.6f}" for one in both])
    for name in both[0]["largest difference"]:
        row(f"largest difference: {name}", [f"{one['largest difference'][name]:.0e}" for one in both])
    row("seconds, msm", [f"{one['seconds']['msm']:.1f}" for one in both])
    row("seconds, jumpmeans", [f"{one['seconds']['ours']:.2f}" for one in both])
    row("times as fast", [f"{one['seconds']['ratio']:.0f}" for one in both])
    return "\n".join(lines)


def main() -> None:
    if shutil.which("Rscript") is None:
        raise SystemExit("Rscript must be there, with the package msm (Debian: r-base-core, r-cran-msm).")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="keep the numbers, and put them into the page")
    options = parser.parse_args()
    found = compare()
    print(json.dumps(found, indent=1))
    if options.write:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        head, rest = PAGE.read_text().split(START)
        PAGE.write_text(f"{head}{START}{markdown(found)}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
