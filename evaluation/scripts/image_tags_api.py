"""A request handler around a compiled tagger."""
import argparse

import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self, width=256, tags=40):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, tags)

    def forward(self, features):
        for block in self.blocks:
            features = features + torch.tanh(block(features)) * torch.sigmoid(features)
        return torch.softmax(self.out(features), dim=-1)


class Handler:
    def __init__(self):
        model = Tagger()
        model.eval()
        self.tagger = torch.compile(model)

    def __call__(self, request):
        scores = self.tagger(request["features"])
        return {"tags": scores.topk(5).indices}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--requests", type=int, default=30000)
    args = parser.parse_args()
    torch.manual_seed(0)
    handler = Handler()
    request = {"features": torch.randn(256, 256)}
    for _ in range(args.requests):
        reply = handler(request)
    print(reply["tags"][0].tolist())


if __name__ == "__main__":
    main()
