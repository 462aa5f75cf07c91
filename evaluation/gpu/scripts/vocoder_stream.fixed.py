"""Streaming speech synthesis back end: acoustic frames in, waveform frames out."""
import os
import time

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import weight_norm
from torch.nn.utils.parametrize import remove_parametrizations

device = "cuda" if torch.cuda.is_available() else "cpu"
dtype = torch.bfloat16 if device == "cuda" else torch.float32

MEL = 100
WIDTH = 2048
INNER = 8192
DEPTH = 8
HOP = 256
STREAMS = 8
SECONDS = float(os.environ.get("SECONDS", "25"))


class Stage(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = weight_norm(nn.Linear(WIDTH, INNER))
        self.b = weight_norm(nn.Linear(INNER, WIDTH))
        self.gate = nn.Parameter(torch.full((WIDTH,), 0.2))

    def forward(self, h):
        return h + self.gate * self.b(F.leaky_relu(self.a(h), 0.1))


class FrameVocoder(nn.Module):
    """Frame-synchronous vocoder with a short recurrent context per stream."""

    def __init__(self):
        super().__init__()
        self.pre = weight_norm(nn.Linear(MEL + HOP, WIDTH))
        self.stages = nn.ModuleList(Stage() for _ in range(DEPTH))
        self.post = weight_norm(nn.Linear(WIDTH, HOP))

    def forward(self, mel, last):
        h = self.pre(torch.cat([mel, last], dim=-1))
        for stage in self.stages:
            h = stage(h)
        return torch.tanh(self.post(h))


def fake_checkpoint(model):
    g = torch.Generator().manual_seed(7)
    state = model.state_dict()
    for key, value in state.items():
        if key.endswith("original1"):
            noise = torch.randn(64, 64, generator=g) / value.shape[1] ** 0.5
            reps = (-(-value.shape[0] // 64), -(-value.shape[1] // 64))
            state[key] = noise.repeat(*reps)[: value.shape[0], : value.shape[1]].clone()
    return state


def load():
    torch.manual_seed(0)
    model = FrameVocoder()
    model.load_state_dict(fake_checkpoint(model))
    for layer in model.modules():
        if isinstance(layer, nn.Linear):
            remove_parametrizations(layer, "weight")
    model = model.to(device, dtype).eval()
    return torch.compile(model, mode="reduce-overhead")


def main():
    vocoder = load()
    mels = torch.randn(200, STREAMS, MEL, device=device, dtype=dtype)

    @torch.no_grad()
    def utterance():
        last = torch.zeros(STREAMS, HOP, device=device, dtype=dtype)
        loud = torch.zeros((), device=device)
        for frame in mels:
            last = vocoder(frame, last).clone()
            loud += last.float().abs().mean()
        return last, loud / len(mels)

    utterance()
    frames = 0
    t0 = time.perf_counter()
    while time.perf_counter() - t0 < SECONDS:
        _, loud = utterance()
        frames += len(mels)
        level = loud.item()
    took = time.perf_counter() - t0
    audio = frames * HOP / 24000
    print(f"level {level:.4f}")
    print(f"{1e3 * took / frames:.3f} ms per frame, x{audio / took:.1f} real time on {STREAMS} streams")


if __name__ == "__main__":
    main()
