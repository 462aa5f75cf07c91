"""Roll out tomorrow's heat demand for every street of a district network."""
import configparser
import pathlib
import sys

import torch

from demand.forecaster import load, streets


def main(argv):
    settings = configparser.ConfigParser()
    settings.read(pathlib.Path(__file__).with_name("network.ini"))
    plan = settings["plan"]
    rollouts = int(argv[0]) if argv else plan.getint("rollouts")
    torch.manual_seed(0)
    predict = load(plan.getint("hidden"))
    total = 0.0
    for n, (history, weather) in enumerate(streets(rollouts, plan.getint("streets"), plan.getint("hours"))):
        demand = predict(history, weather)
        if n % 300 == 0:
            total += demand.mean().item()
            print(f"rollout {n}: mean {demand.mean().item():.4f}")
    print(f"checksum {total:.4f}")


if __name__ == "__main__":
    main(sys.argv[1:])
