"""Learn to collect gems with a clipped policy gradient; all boards are played at once."""
import os

import torch
import torch.nn as nn
from torch.distributions import Categorical, Normal

BOARDS, SENSES, MOVES = 1024, 20, 8


class Player(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(SENSES, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh())
        self.move = nn.Linear(width, MOVES)
        self.throw = nn.Linear(width, 2)
        self.spread = nn.Parameter(torch.zeros(2))
        self.value = nn.Linear(width, 1)

    def forward(self, board):
        h = self.body(board)
        return Categorical(logits=self.move(h)), Normal(self.throw(h), self.spread.exp()), self.value(h).squeeze(-1)


class Boards:
    def __init__(self):
        self.state = torch.randn(BOARDS, SENSES)
        self.shift = 0.3 * torch.randn(MOVES, SENSES)

    def play(self, move, throw):
        self.state = 0.9 * self.state + self.shift[move]
        return torch.exp(-self.state[:, :2].sub(throw).square().sum(-1))


@torch.compile(fullgraph=True)
def act(player, board):
    moves, throws, value = player(board)
    move, throw = moves.sample(), throws.sample()
    return move, throw, moves.log_prob(move) + throws.log_prob(throw).sum(-1), value


@torch.compile(fullgraph=True)
def clipped_loss(player, board, move, throw, before, gain):
    moves, throws, value = player(board)
    ratio = torch.exp(moves.log_prob(move) + throws.log_prob(throw).sum(-1) - before)
    policy = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
    entropy = moves.entropy().mean() + throws.entropy().sum(-1).mean()
    return policy + 0.5 * (value - gain).square().mean() - 0.01 * entropy


def main(rounds):
    torch.manual_seed(0)
    player, boards = Player(), Boards()
    optimizer = torch.optim.SGD(player.parameters(), lr=0.01)
    for number in range(rounds):
        board = boards.state
        with torch.no_grad():
            move, throw, before, value = act(player, board)
        gems = boards.play(move, throw)
        gain = gems - value
        for _ in range(3):
            loss = clipped_loss(player, board, move, throw, before, gain)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if number % 200 == 199:
            print(f"round {number + 1}: {gems.mean().item():.3f} gems")


if __name__ == "__main__":
    main(int(os.environ.get("ROUNDS", 6000)))
