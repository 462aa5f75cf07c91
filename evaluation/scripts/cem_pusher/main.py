"""Push objects about with model-predictive control."""
import argparse

import torch

from pusher import Episode, Planner, WorldModel


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=400)
    parser.add_argument("--moves", type=int, default=50)
    args = parser.parse_args()
    torch.manual_seed(0)
    world = WorldModel().eval()
    planner = Planner(world)
    gained = []
    for number in range(args.episodes):
        with Episode(number) as episode:
            state = episode.state
            for _ in range(args.moves):
                action = planner.choose(state)
                state = episode.push(action)
            gained.append(episode.gained)
        if number % 5 == 0:
            print(number, f"{sum(gained) / len(gained):.3f}")


if __name__ == "__main__":
    main()
