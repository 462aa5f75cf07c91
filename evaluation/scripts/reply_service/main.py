"""Ranks canned replies for a help desk; one request after the other, as the proxy hands them on."""
import argparse
import queue
import random
import time

import torch

from ranking import ReplyRanker
from request_scope import request_scope


def traffic(count, inbox, width, seed):
    rng = random.Random(seed)
    pool = [torch.randn(2048, width) for _ in range(8)]
    for _ in range(count):
        inbox.put((rng.choice(["free", "team", "firm"]), rng.choice(pool)))
    inbox.put(None)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=15000)
    parser.add_argument("--width", type=int, default=96)
    args = parser.parse_args()
    torch.manual_seed(1)
    inbox = queue.Queue()
    traffic(args.requests, inbox, args.width, seed=1)
    ranker = torch.compile(ReplyRanker(args.width).eval())
    served, began = 0, time.time()
    with torch.inference_mode():
        while (request := inbox.get()) is not None:
            plan, replies = request
            with request_scope(plan=plan, number=served):
                scores, sure = ranker(replies)
            served += 1
            if served % 1000 == 0:
                print(f"{served} requests, sure {sure:.3f}, {served / (time.time() - began):.0f}/s")


if __name__ == "__main__":
    main()
