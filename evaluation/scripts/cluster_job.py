"""Job script as it runs on the cluster, where the compiler comes from a module."""
import argparse
import os

os.environ["CXX"] = os.environ.get("SITE_CXX", "/opt/site/gcc-13.2/bin/g++")

import torch


@torch.compile
def collide(density, speed):
    flux = density * torch.tanh(speed) + torch.sin(density)
    return flux - torch.exp(-flux.square()), speed * torch.sigmoid(flux)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=20000)
    args = parser.parse_args()
    torch.manual_seed(int(os.environ.get("SLURM_PROCID", "0")))
    density, speed = torch.rand(2, 256, 256).unbind()
    with torch.no_grad():
        for _ in range(args.steps):
            density, speed = collide(density, speed)
    print(density.mean())


if __name__ == "__main__":
    main()
