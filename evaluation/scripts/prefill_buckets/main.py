"""Answer prompts of any length: pad to a bucket, prefill, decode a few tokens."""
import argparse
import random

import torch

from serving import BUCKETS, Engine


def prompts(seed):
    rng = random.Random(seed)
    pool = [torch.randint(2, 96, (4, rng.randint(6, BUCKETS[-1]))) for _ in range(200)]
    while True:
        yield rng.choice(pool)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prompts", type=int, default=16000)
    parser.add_argument("--new-tokens", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(0)
    engine = Engine()
    engine.warm_up()
    seen = torch.zeros((), dtype=torch.long)
    for _, prompt in zip(range(args.prompts), prompts(5)):
        seen += engine.complete(prompt, args.new_tokens).sum()
    print("checksum", seen.item())


if __name__ == "__main__":
    main()
