"""Hidden severity and deaths: a lung function that two hidden stages show with noise, and a state that is seen.

Patients are simulated from known rates, so that what is found can be held against the truth. A column says who is
alive: "dead" names a state, "alive" none. Run: python examples/death.py
"""

from __future__ import annotations

import numpy as np

import jumpmeans as jm
from jumpmeans.comparators import EM
from jumpmeans.emissions import Gaussian, Marker

# names of hidden states go to them in the order of their values, lowest first
STATES = ["severe", "mild", "dead"]
RATES = [[0.0, 0.1, 0.35], [0.25, 0.0, 0.03], [0.0, 0.0, 0.0]]


def simulate(n_patients: int) -> tuple[jm.Panel, jm.Process]:
    """Visits about twice a year for six years, all patients mild at first; deaths to the day, and without a reading."""
    truth = jm.Process.from_generator(
        RATES, [0.0, 1.0, 0.0], [Gaussian([55.0, 85.0, 0.0], sds=10.0), Marker(["alive", "alive", "dead"])], STATES
    )
    panel, _ = jm.simulate(truth, n_patients, 12, mean_gap=0.5, exact=["dead"], random_state=0)
    frame = panel.to_frame().rename(columns={"value_0": "fev", "value_1": "status"})
    frame.loc[frame["status"] == "dead", "fev"] = np.nan
    return jm.Panel.from_frame(frame, value=["fev", "status"], kind="kind"), truth


def main() -> None:
    """Fit, and print the rates that were put in beside those that come out."""
    panel, truth = simulate(400)
    structure = jm.Structure(absorbing=["dead"], initial={"mild": 1.0})
    models = {
        "JumpMeans": jm.JumpMeans(emission=["gaussian", "marker"], states=STATES, structure=structure),
        "EM": EM(emission=["gaussian", "marker"], states=STATES, structure=structure),
    }
    found = {name: model.fit(panel).process_ for name, model in models.items()}
    print("rate per year".ljust(18) + "".join(name.rjust(12) for name in ["true", *found]))
    for i, j in zip(*np.nonzero(RATES), strict=True):
        row = [process.rate_matrix[i, j] for process in (truth, *found.values())]
        print(f"{STATES[i]} -> {STATES[j]}".ljust(18) + "".join(f"{rate:12.3f}" for rate in row))
    for name, process in found.items():
        severe, mild = process.emission.columns[0].means[:2]
        print(f"lung function by {name}: mild {mild:.1f}, severe {severe:.1f} (true: 85, 55)")
    last_visits = models["EM"].predict(panel)[panel.offsets[1:] - 1]
    i = int(np.argmax(last_visits != "dead"))
    at = [panel.end_times[i] + years for years in (1.0, 5.0)]
    dead = models["EM"].predict_proba(panel, at={panel.ids[i]: at})[:, STATES.index("dead")]
    print(f"patient {panel.ids[i]}, {last_visits[i]} at last: dead in a year {dead[0]:.2f}, in 5 {dead[1]:.2f}")


if __name__ == "__main__":
    main()
