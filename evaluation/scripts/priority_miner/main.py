import argparse

import torch

from agent.memory import PriorityMemory
from agent.learner import Learner


def main():
    parser = argparse.ArgumentParser(description="offline Q learning of a mining robot with prioritised replay")
    parser.add_argument("--updates", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(12)
    memory = PriorityMemory.recorded(1 << 13, features=32)
    learner = Learner(features=32, actions=6)
    for _ in range(args.updates):
        batch, slots = memory.sample(args.batch)
        errors = learner.update(batch)
        memory.reweigh(slots, errors)
    print("mean priority", memory.total() / memory.capacity)


if __name__ == "__main__":
    main()
