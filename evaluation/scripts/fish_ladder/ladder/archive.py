"""One file for each day, as the camera's computer writes it."""
import numpy as np


def record(folder, days, clips, frames=6, side=48, seed=8):
    draw = np.random.default_rng(seed)
    for day in range(days):
        water = draw.integers(90, 110, (clips, frames, side, side), dtype=np.uint8)
        counts = draw.integers(0, 4, clips)
        for clip, count in enumerate(counts):
            water[clip, :, 10 * count:10 * count + 8, 5:30] = 200
        np.savez_compressed(folder / f"day{day:02d}.npz", frames=water, counts=counts)
