"""Speed of the online decoder in rows a second of CPU time, 5 states, 10,000 sequences open; and what it keeps.

`python benchmarks/online.py` prints it; with `--write` the numbers go to results/online.json and into docs/online.md.
"""

import argparse
import json
from pathlib import Path
from time import process_time

import numpy as np

import jumpmeans as jm

STATES, OPEN, ROUNDS = 5, 10_000, 40
HERE = Path(__file__).parent
RESULTS, PAGE = HERE / "results/online.json", HERE.parent / "docs/online.md"
START, END = "<!-- online speed -->\n", "\n<!-- end of online speed -->"


def measure():
    """Speeds in rows a second of CPU time, and what is kept of each sequence."""
    chain = (np.ones((STATES, STATES)) - np.eye(STATES)) / (STATES - 1)
    emission = jm.emissions.Gaussian(2.0 * np.arange(STATES), sds=1.0)
    process = jm.Process(np.full(STATES, 0.2), chain, emission=emission)
    panel, _ = jm.simulate(process, OPEN, ROUNDS, random_state=0)
    decoder = jm.OnlineDecoder(process)
    times, values = panel.times.reshape(OPEN, ROUNDS), panel.values.reshape(OPEN, ROUNDS)
    decoder.update_many(panel.ids, times[:, 0], values[:, 0])  # compiles, opens all
    begun = process_time()
    for k in range(1, ROUNDS):
        decoder.update_many(panel.ids, times[:, k], values[:, k])
    together = OPEN * (ROUNDS - 1) / (process_time() - begun)
    rows = [(int(panel.ids[i]), float(times[i, -1]) + 1.0, float(values[i, 0])) for i in range(OPEN)]
    decoder.update(*rows[0])  # compiles
    begun = process_time()
    for id, time, value in rows[1:]:
        decoder.update(id, time, value)
    apart = (OPEN - 1) / (process_time() - begun)
    return {
        "states": STATES,
        "open": len(decoder),
        "rows_a_second": {"update_many": together, "update": apart},
        "kib_each": decoder.nbytes / len(decoder) / 1024,
        "starts_lost": decoder.lost,
    }


def markdown(found):
    """What docs/online.md says of speed."""
    speed = found["rows_a_second"]
    return (
        f"{round(speed['update_many'], -4):,.0f} rows in a second of CPU time at {found['states']} states with "
        f"{found['open']:,} beds open ({round(speed['update'], -3):,.0f} by one `update` each), "
        f"{found['kib_each']:.1f} KiB kept of each (`python benchmarks/online.py`)."
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the numbers, and put them into docs/online.md")
    options = parser.parse_args()
    found = measure()
    print(json.dumps(found, indent=1))
    if options.write:
        RESULTS.write_text(json.dumps(found, indent=1) + "\n")
        head, rest = PAGE.read_text().split(START)
        PAGE.write_text(f"{head}{START}{markdown(found)}{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
