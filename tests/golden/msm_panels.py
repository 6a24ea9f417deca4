"""Panels of tests/test_msm.py: `python msm_panels.py` writes msm_*.csv beside this file; msm_multistate.R reads them.

One slow disease, drawn without the package: well (1), ill (2), worse (3), dead (4). Visits at irregular times; deaths
to the day, some of them on the day of a visit; some people last known as alive (99); and the same people seen through a
test that errs (`shown`), whose true state is known at some visits.
"""

from pathlib import Path

import numpy as np

Q = np.array([[0, 0.25, 0, 0.05], [0.15, 0, 0.3, 0.1], [0, 0.2, 0, 0.4], [0, 0, 0, 0]])
ERRORS = np.array([[0.9, 0.1, 0, 0], [0.12, 0.78, 0.1, 0], [0, 0.15, 0.85, 0], [0, 0, 0, 1]])
HERE = Path(__file__).parent


def course(rng, end):
    """Jump times and states of one person from well until death or the end."""
    times, states = [0.0], [0]
    while states[-1] < 3:
        rates = Q[states[-1]]
        at = times[-1] + rng.exponential(1 / rates.sum())
        if at > end:
            break
        times.append(at)
        states.append(int(rng.choice(4, p=rates / rates.sum())))
    return np.array(times), np.array(states)


def write(name, rows, header):
    lines = [",".join(str(cell) for cell in row) for row in rows]
    (HERE / f"msm_{name}.csv").write_text("\n".join([header, *lines]) + "\n")


def main():
    rng = np.random.default_rng(20)
    snapshots, deaths, exact, censored, misread = [], [], [], [], []
    for person in range(120):
        end = rng.uniform(4, 12)
        jumps, states = course(rng, end)
        dead = states[-1] == 3
        visits = np.round(np.concatenate([[0.0], np.sort(rng.uniform(0, end, rng.integers(3, 8)))]), 3)
        seen = lambda t: int(states[np.searchsorted(jumps, t, side="right") - 1])  # noqa: B023
        alive = [t for t in np.unique(visits) if seen(t) < 3]
        died = round(float(jumps[-1]), 3)
        if dead and person % 7 == 0:  # on the day of the last visit
            died = alive[-1] if alive[-1] > 0 else died
        for t in np.unique(visits):
            snapshots.append((person, t, seen(t) + 1))
        rows = [(person, t, seen(t) + 1, 1) for t in alive]
        if dead:
            rows.append((person, died, 4, 3))
        deaths += rows
        # of those who did not die every other one is known to have been alive later on
        late = [(person, round(float(end) + 1.0, 3), 99, 1)] if not dead and person % 2 else []
        censored += [*rows, *late]
        exact += [(person, round(float(t), 3), int(s) + 1) for t, s in zip(jumps, states, strict=True)]
        if not dead:
            exact.append((person, round(float(end), 3), int(states[-1]) + 1))
        for _, t, state, kind in rows:
            shown = int(rng.choice(4, p=ERRORS[state - 1])) + 1
            known = int(state == 4 or rng.random() < 0.1 or t == 0.0)
            misread.append((person, t, state if known else shown, kind, known))
    write("snapshots", snapshots, "id,time,state")
    write("deaths", deaths, "id,time,state,obstype")
    write("exact", exact, "id,time,state")
    write("censored", censored, "id,time,state,obstype")
    write("misread", misread, "id,time,state,obstype,known")


if __name__ == "__main__":
    main()
