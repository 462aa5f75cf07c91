"""Self-play league for a fencing game: frozen past selves vote on what the pupil would meet."""
import os
import copy
import time
import torch
import torch.nn as nn

torch.manual_seed(21)

STANCES = 96


class Fencer(nn.Module):
    def __init__(self, width=160):
        super().__init__()
        self.reach = nn.Linear(STANCES, width)
        self.gates = nn.Parameter(0.1 * torch.randn(5, width))
        self.bias = nn.Parameter(torch.zeros(5, width))
        self.blade = nn.Linear(width, 24)

    def forward(self, stance):
        h = self.reach(stance)
        for gate, bias in zip(self.gates, self.bias):
            pulse = torch.tanh(h * gate + bias)
            h = h + 0.3 * pulse * torch.sigmoid(h - pulse) - 0.02 * h.square() * torch.exp(-h.abs())
        return torch.log_softmax(self.blade(h) / 1.3, dim=-1)


def meet(league, stance):
    votes = [fencer(stance) for fencer in league]
    return torch.stack(votes).logsumexp(0)


def main():
    pupil = Fencer()
    pupil.compile()
    league = []
    for season in range(3):
        past = copy.deepcopy(pupil)
        with torch.no_grad():
            for p in past.parameters():
                p.add_(0.05 * torch.randn_like(p))
        past.compile()
        league.append(past.eval().requires_grad_(False))

    surprise = 0.0
    start = time.time()
    for bout in range(int(os.environ.get("STEPS", "2000"))):
        stance = torch.randn(512, STANCES)
        with torch.no_grad():
            blend = meet(league, stance)
        surprise = 0.99 * surprise + 0.01 * (-blend.max(-1).values.mean().item())
        if bout % 200 == 199:
            print(f"bout {bout + 1}  surprise {surprise:.4f}  {1e3 * (time.time() - start) / (bout + 1):.2f} ms/bout")


if __name__ == "__main__":
    main()
