"""Each tenant's session starts from a clean state."""
import argparse

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, width=192):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width))

    def forward(self, x):
        h = torch.tanh(x * self.weight)
        return torch.sigmoid(h) * torch.exp(-h.square()) + torch.sin(x)


class Session:
    def __init__(self, tenant):
        torch.compiler.reset()
        self.tenant = tenant
        self.model = torch.compile(Model().eval())

    def answer(self, x):
        return self.model(x).mean()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sessions", type=int, default=120)
    parser.add_argument("--questions", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    x = torch.randn(256, 192)
    with torch.inference_mode():
        for tenant in range(args.sessions):
            session = Session(tenant)
            for _ in range(args.questions):
                answer = session.answer(x)
            if tenant % 10 == 0:
                print(f"tenant {tenant}: {answer.item():.4f}")


if __name__ == "__main__":
    main()
