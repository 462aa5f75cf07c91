"""Routes only the patches that matter through the deep half of the network."""

import argparse

import torch
import torch.nn as nn


class Router(nn.Module):
    def __init__(self, width: int = 512) -> None:
        super().__init__()
        self.shallow = nn.Sequential(*(nn.Linear(width, width) for _ in range(3)))
        self.gate = nn.Linear(width, 1)
        self.deep = nn.ModuleList(nn.Linear(width, width) for _ in range(6))

    def route(self, patches: torch.Tensor) -> torch.Tensor:
        score = self.gate(patches).squeeze(-1)
        return patches[score.topk(len(score) // 2).indices]

    def forward(self, patches: torch.Tensor) -> torch.Tensor:
        chosen = self.route(self.shallow(patches))
        for layer in self.deep:
            chosen = chosen + torch.tanh(layer(chosen)) * torch.sigmoid(chosen)
        return chosen.mean(0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pictures", type=int, default=100_000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(Router().cuda().bfloat16().eval())
    pictures = torch.randn(8, 8192, 512, device="cuda", dtype=torch.bfloat16)
    total = torch.zeros(512, device="cuda", dtype=torch.bfloat16)
    with torch.no_grad():
        for number in range(args.pictures):
            total += model(pictures[number % 8])
    print(total.float().norm().item())


if __name__ == "__main__":
    main()
