"""Q-learning in a maze that lives in Python."""
import argparse
import random

import torch
import torch.nn as nn


class Maze:
    MOVES = ((0, 1), (1, 0), (0, -1), (-1, 0))

    def __init__(self, size=24, seed=0):
        self.random = random.Random(seed)
        self.size = size
        self.walls = {
            (self.random.randrange(size), self.random.randrange(size)) for _ in range(size * 4)
        }
        cells = [(i, j) for i in range(size) for j in range(size)]
        self.views = {cell: self.seen_from(cell) for cell in cells}
        self.reset()

    def reset(self):
        self.at = (0, 0)

    def view(self):
        return self.views[self.at]

    def seen_from(self, at):
        row = []
        for i in range(self.size):
            for j in range(self.size):
                far = abs(i - at[0]) + abs(j - at[1])
                row.append(-1.0 if (i, j) in self.walls else 1.0 / (1 + far))
        return torch.tensor(row)

    def move(self, action):
        di, dj = self.MOVES[action]
        after = (self.at[0] + di, self.at[1] + dj)
        if after in self.walls or not all(0 <= c < self.size for c in after):
            return -0.1
        self.at = after
        if after == (self.size - 1, self.size - 1):
            self.reset()
            return 1.0
        return -0.01


class QNet(nn.Module):
    def __init__(self, cells):
        super().__init__()
        self.a = nn.Linear(cells, 64)
        self.b = nn.Linear(64, 4)

    def forward(self, views):
        h = torch.tanh(self.a(views))
        values = self.b(h * torch.sigmoid(h))
        return values, values.argmax(-1).tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--moves", type=int, default=24000)
    args = parser.parse_args()
    torch.manual_seed(0)
    mazes = [Maze(seed=i) for i in range(8)]
    net = QNet(mazes[0].size ** 2)
    policy = torch.compile(net)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    for number in range(args.moves):
        values, actions = policy(torch.stack([maze.view() for maze in mazes]))
        rewards = torch.tensor([maze.move(a) for maze, a in zip(mazes, actions)])
        loss = (values.amax(-1) - rewards).square().mean()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        if number % 500 == 0:
            print(number, loss.item())


if __name__ == "__main__":
    main()
