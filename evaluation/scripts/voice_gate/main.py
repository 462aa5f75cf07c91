"""Run a voice gate over a stream of microphone blocks, several microphones at a time."""
import argparse
import configparser
import pathlib

import torch

from gate import GateNet, microphones
from gate.meters import watch_loudness


def read_config():
    parser = configparser.ConfigParser()
    parser.read(pathlib.Path(__file__).with_name("gate.ini"))
    return parser


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=20000)
    args = parser.parse_args()
    torch.manual_seed(11)
    config = read_config()
    net = GateNet(
        config.getint("audio", "channels"),
        config.getint("net", "layers"),
        config.getint("net", "reach"),
    ).eval()
    level = watch_loudness(net.shape)
    run = torch.compile(net)
    opened = torch.zeros(())
    with torch.inference_mode():
        state = net.fresh(batch=4)
        for number, block in zip(range(args.blocks), microphones(4, config.getint("audio", "block"))):
            gated, state = run(block, state)
            opened += gated.square().mean()
            if number % 2000 == 1999:
                print(f"{number + 1} blocks, passed power {opened.item() / (number + 1):.4f}")
    print("smoothed level", [round(v, 3) for v in level.value.tolist()])


if __name__ == "__main__":
    main()
