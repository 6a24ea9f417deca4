"""Speed of the online decoder in rows a second of CPU time, 5 states, 10,000 sequences open; and what it keeps."""

from time import process_time

import numpy as np

import jumpmeans as jm

STATES, OPEN, ROUNDS = 5, 10_000, 40


def main():
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
    speed = OPEN * (ROUNDS - 1) / (process_time() - begun)
    print(f"update_many: {speed:,.0f} rows a second on one core, {STATES} states, {len(decoder):,} sequences open")
    few = 500
    begun = process_time()
    for i in range(few):
        decoder.update(int(panel.ids[i]), times[i, -1] + 1.0, values[i, 0])
    print(f"update: {few / (process_time() - begun):,.0f} rows a second, one call each")
    print(f"kept of each sequence: {decoder.nbytes / len(decoder) / 1024:.1f} KiB; starts lost: {decoder.lost}")


if __name__ == "__main__":
    main()
