"""The options that all programs have, and what one of their steps takes once they run steadily."""
import argparse
import json
import statistics
import time

import torch


def options(*, cpu, cuda):
    """``--device`` and ``--steps``; ``cpu`` and ``cuda``: steps where none are asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--device", choices=("cpu", "cuda"))
    parser.add_argument("--steps", type=int)
    args = parser.parse_args()
    args.device = args.device or ("cuda" if torch.cuda.is_available() else "cpu")
    args.steps = args.steps or (cuda if args.device == "cuda" else cpu)
    return args


class Steady:
    """Times the second half of the steps in ten windows; waits for the device at their edges only."""

    def __init__(self, steps, device, name=None):
        self.name, self.cuda = name, torch.device(device).type == "cuda"
        self.begin, self.window = steps // 2, max(1, steps // 20)
        self.done, self.edges = 0, []

    def step(self, count=1):
        """``count`` more steps are done."""
        self.done += count
        if self.done >= (self.edges[-1][0] + self.window if self.edges else self.begin):
            if self.cuda:
                torch.cuda.synchronize()
            self.edges.append((self.done, time.perf_counter(), time.process_time()))

    def show(self):
        """One line of JSON: medians of the windows, by the wall and in this process's CPU time."""
        figures = {"callable": self.name, "steps": self.done}
        for column, clock in ((1, "ms_per_step"), (2, "cpu_ms_per_step")):
            windows = [
                1000 * (end[column] - start[column]) / (end[0] - start[0])
                for start, end in zip(self.edges, self.edges[1:])
            ]
            figures[clock] = statistics.median(windows) if windows else None
        print(json.dumps(figures), flush=True)
