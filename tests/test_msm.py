"""The questions that R's msm answers, on panels of our own: its numbers are in golden/msm_multistate.json.

Made by golden/msm_multistate.R from the panels of golden/msm_panels.py; here no R is needed.
"""

import json
from pathlib import Path

import jumpmeans as jm

GOLDEN = Path(__file__).parent / "golden"
NUMBERS = json.loads((GOLDEN / "msm_multistate.json").read_text())
MOVES = {1: [2, 4], 2: [1, 3, 4], 3: [2, 4]}


def read(name, **about):
    return jm.read_panel(GOLDEN / f"msm_{name}.csv", id="id", time="time", value="state", labels=["state"], **about)


def panel_of(name):
    if name in ("deaths", "equal", "fixed"):
        return read("deaths", kind="obstype")
    if name == "censored":
        return read("censored", kind="obstype", sets={99: [1, 2, 3]})
    if name == "exact":
        import pandas as pd

        frame = pd.read_csv(GOLDEN / "msm_exact.csv")
        return jm.Panel.from_frame(frame.assign(state=frame.state.astype(str), how=2), value="state", kind="how")
    return read(name)
