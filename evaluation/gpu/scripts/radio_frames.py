"""Classifies radio frames that wait in host memory."""

import argparse
from collections.abc import Iterator

import torch
import torch.nn as nn


class Frames:
    """Recorded frames, a batch at a time."""

    def __init__(self, batches: int, size: tuple[int, ...]) -> None:
        self.stored = [torch.randn(size) for _ in range(batches)]

    def forever(self) -> Iterator[torch.Tensor]:
        while True:
            for batch in self.stored:
                yield batch.to("cuda")


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.filters = nn.Conv1d(8, 64, 9, stride=4)
        self.norm = nn.BatchNorm1d(64)
        self.head = nn.Linear(64, 24)

    def forward(self, frames: torch.Tensor) -> torch.Tensor:
        seen = nn.functional.gelu(self.norm(self.filters(frames)))
        return self.head(seen.square().mean(-1).sqrt())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=20_000)
    args = parser.parse_args()
    torch.manual_seed(0)
    model = torch.compile(Classifier().cuda().eval())
    counts = torch.zeros(24, device="cuda")
    source = Frames(6, (256, 8, 8192)).forever()
    with torch.inference_mode():
        for _, frames in zip(range(args.batches), source, strict=False):
            counts += model(frames).softmax(-1).sum(0)
    print(counts.tolist())


if __name__ == "__main__":
    main()
