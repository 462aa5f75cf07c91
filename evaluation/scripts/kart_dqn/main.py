"""Learn to steer a kart with a double network and a replay that prefers surprising moments."""
import argparse

import torch

from kart.learner import Learner
from kart.replay import PrioritizedReplay
from kart.track import Track


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=4000)
    parser.add_argument("--batch", type=int, default=512)
    args = parser.parse_args()

    torch.manual_seed(0)
    track, replay = Track(karts=32), PrioritizedReplay(capacity=32768)
    learner = Learner(track.senses, track.actions)
    for _ in range(64):
        replay.extend(track.drive(learner.net))
    for update in range(args.updates):
        if update % 8 == 0:
            replay.extend(track.drive(learner.net))
        leaves, moments = replay.sample(args.batch)
        surprise, used = learner.update(*moments)
        replay.reweigh(leaves, surprise.tolist())
        if update % 250 == 249:
            print(f"update {update + 1}: surprise {surprise.mean().item():.3f}, {used} actions in use")


if __name__ == "__main__":
    main()
