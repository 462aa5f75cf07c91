import argparse
import random

import torch


@torch.compile(dynamic=True)
def describe(points, centres):
    difference = points[:, None, :] - centres[None]
    distance = difference.square().sum(-1)
    weight = torch.exp(-distance) / (1 + distance.sqrt())
    feature = torch.sin(difference * weight[..., None]).sum(1)
    return torch.cat([feature.mean(0), feature.amax(0), feature.square().mean(0)])


class Clouds:
    def __init__(self, smallest, largest, seed=0):
        self.random = random.Random(seed)
        self.points = torch.rand(largest, 3)
        self.smallest, self.largest = smallest, largest

    def __call__(self):
        return self.points[: self.random.randint(self.smallest, self.largest)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--clouds", type=int, default=180000)
    args = parser.parse_args()
    torch.manual_seed(0)
    clouds = Clouds(600, 900)
    centres = torch.rand(16, 3)
    mean = torch.zeros(9)
    with torch.no_grad():
        for number in range(1, args.clouds + 1):
            mean += (describe(clouds(), centres) - mean) / number
    print(mean)


if __name__ == "__main__":
    main()
