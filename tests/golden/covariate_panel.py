"""The panel of tests/test_em_covariates.py: `python covariate_panel.py` writes msm_covariates.csv beside this file.

An illness drawn without the package: well (1), ill (2), dead (3); rates that depend on sex and on the age at the last
visit. Deaths to the day.
"""

from pathlib import Path

import numpy as np

Q = np.array([[0, 0.3, 0.04], [0.2, 0, 0.15], [0, 0, 0]])
SEX = np.array([[0, 0.5, 0.0], [-0.4, 0, 0.3], [0, 0, 0]])
AGE = np.array([[0, 0.03, 0.05], [-0.02, 0, 0.04], [0, 0, 0]])
HERE = Path(__file__).parent


def main():
    rng = np.random.default_rng(13)
    lines = ["id,time,state,sex,age,obstype"]
    for person in range(200):
        sex, age = int(rng.integers(2)), round(float(rng.uniform(45, 75)), 1)
        visits = np.round(np.cumsum(np.concatenate([[0.0], rng.uniform(0.4, 2.5, rng.integers(4, 9))])), 3)
        state, died = 0, None
        for k, t in enumerate(visits.tolist()):
            if k:
                now = visits[k - 1]
                rates = Q * np.exp(sex * SEX + (age + visits[k - 1] - 60) * AGE)
                while state < 2:
                    now += rng.exponential(1 / rates[state].sum())
                    if now > t:
                        break
                    state = int(rng.choice(3, p=rates[state] / rates[state].sum()))
                    died = round(float(now), 3) if state == 2 else None
            row = (person, died if state == 2 else t, state + 1, sex, round(age + t, 3), 3 if state == 2 else 1)
            lines.append(",".join(map(str, row)))
            if state == 2:
                break
    (HERE / "msm_covariates.csv").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
