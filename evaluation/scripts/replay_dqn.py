"""Double deep Q-learning on a grid of stored transitions."""
import argparse
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F


class Dueling(nn.Module):
    def __init__(self, seen=32, width=96, moves=6):
        super().__init__()
        self.first = nn.Linear(seen, width)
        self.second = nn.Linear(width, width)
        self.value = nn.Linear(width, 1)
        self.gain = nn.Linear(width, moves)

    def forward(self, x):
        h = self.first(x)
        h = torch.tanh(h) * torch.sigmoid(h) + torch.sin(h)
        g = self.second(h)
        h = h + F.softplus(g) * torch.exp(-g * g)
        gain = self.gain(h)
        return self.value(h) + gain - gain.mean(1, keepdim=True)


class Memory:
    def __init__(self, size=20000, seen=32):
        self.size = size
        self.now, self.then = torch.randn(size, seen), torch.randn(size, seen)
        self.move = torch.randint(0, 6, (size, 1))
        self.reward = torch.randn(size, 1)

    def draw(self, count):
        pick = torch.randint(0, self.size, (count,))
        return self.now[pick], self.move[pick], self.reward[pick], self.then[pick]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=6000)
    parser.add_argument("--batch", type=int, default=2048)
    parser.add_argument("--sync", type=int, default=25)
    args = parser.parse_args()
    torch.manual_seed(6)
    learner = Dueling()
    anchor = copy.deepcopy(learner).requires_grad_(False)
    online, target = torch.compile(learner), torch.compile(anchor)
    optimizer = torch.optim.Adam(learner.parameters(), lr=1e-3, foreach=True)
    memory = Memory()
    for update in range(args.updates):
        now, move, reward, then = memory.draw(args.batch)
        with torch.no_grad():
            goal = reward + 0.97 * target(then).amax(1, keepdim=True)
        loss = F.smooth_l1_loss(online(now).gather(1, move), goal)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if update % args.sync == 0:
            anchor.load_state_dict(learner.state_dict())
        if update % 500 == 0:
            print(f"update {update}: {loss.item():.4f}")


if __name__ == "__main__":
    main()
