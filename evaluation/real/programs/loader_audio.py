"""Keyword spotting from a DataLoader with two workers that make the features of each clip."""
import numpy as np
import torch
import torch.nn as nn
from steady import Steady, options


class Clips(torch.utils.data.Dataset):
    def __len__(self):
        return 200_000

    def __getitem__(self, index):
        rng = np.random.default_rng(index)
        clip = rng.standard_normal(8_000).astype(np.float32)
        frames = np.lib.stride_tricks.sliding_window_view(clip, 256)[::128]
        spectrum = np.abs(np.fft.rfft(frames * np.hanning(256).astype(np.float32), axis=-1))
        features = np.log1p(spectrum[:, :64]).astype(np.float32)
        return torch.from_numpy(features).T, index % 12


def main():
    args = options(cpu=250, cuda=400)
    torch.manual_seed(0)
    width = 256 if args.device == "cuda" else 64
    model = nn.Sequential(
        nn.Conv1d(64, width, 5, padding=2), nn.BatchNorm1d(width), nn.GELU(),
        nn.Conv1d(width, width, 5, padding=2), nn.BatchNorm1d(width), nn.GELU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(width, 12),
    ).to(args.device)
    compiled = torch.compile(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    data = torch.utils.data.DataLoader(
        Clips(), batch_size=32, num_workers=2, pin_memory=args.device == "cuda"
    )
    steady = Steady(args.steps, args.device)
    for features, labels in data:
        features = features.to(args.device, non_blocking=True)
        labels = labels.to(args.device, non_blocking=True)
        loss = nn.functional.cross_entropy(compiled(features), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        steady.step()
        if steady.done == args.steps:
            break
    steady.show()


if __name__ == "__main__":
    main()
