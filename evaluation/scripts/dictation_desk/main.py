"""Takes dictations from a queue and writes down which of forty sounds was said when."""
import argparse
import json
import pathlib
import queue

import torch

from desk.listener import Listener
from desk.secretary import Secretary


def recordings(config, count):
    generator = torch.Generator().manual_seed(11)
    shortest, longest = (int(s * config["rate"]) for s in config["seconds"])
    for _ in range(count):
        frames = int(torch.randint(shortest, longest, (), generator=generator))
        yield torch.rand(8, frames, config["bands"], generator=generator) * 4


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recordings", type=int, default=4000)
    args = parser.parse_args()
    config = json.loads(pathlib.Path(__file__).with_name("desk.json").read_text())
    torch.manual_seed(11)
    waiting = queue.SimpleQueue()
    secretary = Secretary(Listener(config["bands"], config["width"]), config["compile"])
    for number, recording in enumerate(recordings(config, args.recordings)):
        waiting.put(recording)
        if waiting.qsize() == 4:
            secretary.work_off(waiting)
        if number % 400 == 0:
            print(f"recording {number}: {secretary.written} sounds so far", flush=True)


if __name__ == "__main__":
    main()
