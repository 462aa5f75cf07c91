import argparse
import configparser
from pathlib import Path

import torch

from precond import Shampoo
from turbine.data import sensor_rows
from turbine.surrogate import Surrogate, fit_error


class Training:
    def __init__(self, config):
        self.model = Surrogate(config.getint("inputs"), config.getint("hidden"))
        self.error = torch.compile(fit_error)
        self.optimizer = Shampoo(self.model.parameters(), lr=config.getfloat("rate"))
        self.callbacks = []

    def run(self, steps, batch):
        for step in range(steps):
            loss = self.error(self.model, *sensor_rows(batch))
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for callback in self.callbacks:
                callback(step, loss)


def show(step, loss):
    if step % 250 == 0:
        print(f"step {step}: {loss.item():.4f}")


if __name__ == "__main__":
    config = configparser.ConfigParser()
    config.read(Path(__file__).parent / "turbine.ini")
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=config.getint("run", "steps"))
    args = parser.parse_args()
    torch.manual_seed(29)
    training = Training(config["model"])
    training.callbacks.append(show)
    training.run(args.steps, config.getint("run", "batch"))
