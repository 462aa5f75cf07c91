"""Policies answer while they are trained."""
import argparse

import torch
import torch.nn as nn


class Policy(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.a = nn.Linear(32, width)
        self.b = nn.Linear(width, 8)
        self.register_buffer("answers", torch.zeros(()))

    def forward(self, state):
        self.answers += 1
        h = torch.tanh(self.a(state)) * torch.sin(self.a(state))
        h = h * torch.sigmoid(h) + torch.exp(-h.square()) / (1 + self.answers % 1000)
        return torch.softmax(self.b(h), -1)


class Gateway:
    def __init__(self):
        self.policy = torch.compile(Policy())
        self.modes = [torch.no_grad, torch.enable_grad, torch.inference_mode]

    def ask(self, number, state):
        with self.modes[number % 3]():
            return self.policy(state)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--questions", type=int, default=75000)
    args = parser.parse_args()
    torch.manual_seed(0)
    gateway = Gateway()
    state = torch.randn(384, 32)
    for number in range(args.questions):
        answer = gateway.ask(number, state)
    print(answer.detach().amax(-1).mean().item())


if __name__ == "__main__":
    main()
