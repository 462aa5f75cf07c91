"""Answers requests with the intent of each text; picks up new weights as soon as they are there."""
import argparse

import torch
from intents import IntentNet, IntentService, WeightStore


def traffic(requests, texts, length, words):
    stored = torch.randint(words, (64, texts, length), generator=torch.Generator().manual_seed(5))
    for number in range(requests):
        yield number, stored[number % 64]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=5000)
    parser.add_argument("--texts", type=int, default=32)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--push-every", type=int, default=1000)
    args = parser.parse_args()
    torch.manual_seed(8)
    store = WeightStore(IntentNet)
    service = IntentService(IntentNet, store, torch.zeros(args.texts, args.length, dtype=torch.long))
    sure = 0
    for number, texts in traffic(args.requests, args.texts, args.length, words=4000):
        if number % args.push_every == 0:
            store.push()
        _, chances = service.handle(texts)
        sure += (chances > 0.1).sum()
    print(f"{service.count} texts, version {service.version}, {int(sure)} sure")


if __name__ == "__main__":
    main()
