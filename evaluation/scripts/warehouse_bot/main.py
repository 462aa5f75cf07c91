"""Teaches carts of a warehouse which shelf to go to, from a memory of what they did."""
import argparse
import time

import numpy as np
import torch
import torch.nn.functional as F

from depot import Memory, Picker


class Coach:
    def __init__(self, args):
        torch.manual_seed(args.seed)
        self.args = args
        self.memory = Memory(args.capacity, 24, args.seed)
        self.picker = Picker(24, args.hidden, 12)
        self.policy = torch.compile(self.picker)
        self.optimizer = torch.optim.Adam(self.picker.parameters(), lr=3e-4)

    def live(self, number):
        seen = np.cos(np.arange(24, dtype=np.float32) * number * 0.01)
        self.memory.put(seen, number % 12, float(seen[0]))

    def learn(self):
        seen, done, paid = self.memory.draw(self.args.batch)
        worth = self.policy(seen).gather(1, done.unsqueeze(1)).squeeze(1)
        loss = F.smooth_l1_loss(worth, paid)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=2500)
    parser.add_argument("--capacity", type=int, default=600_000)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--hidden", type=int, default=128)
    parser.add_argument("--seed", type=int, default=3)
    args = parser.parse_args()
    coach = Coach(args)
    start = time.perf_counter()
    for number in range(args.updates):
        coach.live(number)
        loss = coach.learn()
        if number % 250 == 249:
            print(f"update {number + 1}: loss {loss.item():.4f}")
    print(f"{args.updates} updates, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
