"""People who differ in how fast they move: from a fit without frailty to one with (`model.frailty`)."""

from __future__ import annotations

import numpy as np

from ..model.frailty import Frailty
from .ascent import Climb, Task, climb, look

# Variances of frailty that a climb may start from, by which of them is the likeliest under the process without.
VARIANCES = (0.03, 0.2, 1.0)


def climb_with_frailty(task: Task, run: Climb, frailty: Frailty, max_iter: int, tol: float, accelerate: bool) -> Climb:
    """A climb on from one without frailty; that one, if it is at least as likely as what a variance leads to."""
    process = run.end.process
    starts = [frailty] if frailty.fixed else [frailty.begun(v) for v in VARIANCES]
    start = starts[0]
    if len(starts) > 1:
        heights = [task.sequences.under(own).log_likelihood(process) for own in starts]
        start = starts[int(np.argmax(heights))]
    found = climb(task, process, max_iter, tol, accelerate, frailty=start)
    assert found.end.frailty is not None
    # what is published of people is what is read from a panel
    end = look(task, found.end.process, frailty=found.end.frailty.begun(found.end.frailty.variance))
    if not frailty.fixed and run.end.log_lik >= end.log_lik:
        return run
    return found._replace(end=end)
