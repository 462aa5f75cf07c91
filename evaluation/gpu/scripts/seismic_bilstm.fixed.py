"""Phase picking on continuous seismograms: conv front end, bidirectional LSTM, per-sample head."""
import os
import time

import torch
import torch.nn as nn

device = "cuda"
STEPS = int(os.environ.get("STEPS", "16000"))
HIDDEN = 768
BATCH = 96
WINDOW = 256


class PhasePicker(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv1d(3, 64, 9, stride=4, padding=4),
            nn.BatchNorm1d(64),
            nn.ReLU(),
            nn.Conv1d(64, 128, 7, stride=4, padding=3),
            nn.BatchNorm1d(128),
            nn.ReLU(),
        )
        self.rnn = nn.LSTM(128, hidden, batch_first=True, bidirectional=True)
        self.norm = nn.LayerNorm(2 * hidden)
        self.head = nn.Linear(2 * hidden, 3)

    def forward(self, wave):
        wave = (wave - wave.mean(-1, keepdim=True)) / (wave.std(-1, keepdim=True) + 1e-6)
        feats = self.front(wave).transpose(1, 2)
        seq, _ = self.rnn(feats)
        return self.head(torch.tanh(self.norm(seq))).softmax(-1)


def synthetic_windows(n):
    t = torch.linspace(0, 1, WINDOW, device=device)
    out = []
    for _ in range(n):
        onset = torch.rand(BATCH, 3, 1, device=device) * 0.8
        burst = torch.exp(-20 * (t - onset).clamp_min(0)) * (t > onset)
        out.append(burst * torch.sin(300 * t) + 0.1 * torch.randn(BATCH, 3, WINDOW, device=device))
    return out


@torch.inference_mode()
def main():
    torch.manual_seed(0)
    picker = PhasePicker(HIDDEN).to(device).eval()
    picker = torch.compile(picker)
    windows = synthetic_windows(8)
    picks = torch.zeros(3, device=device)
    for w in windows[:3]:
        picker(w)
    torch.cuda.synchronize()
    t0 = time.perf_counter()
    last = 0
    for step in range(1, STEPS + 1):
        prob = picker(windows[step % len(windows)])
        picks += (prob > 0.5).float().mean((0, 1))
        if step % 2000 == 0 or step == STEPS:
            torch.cuda.synchronize()
            t1 = time.perf_counter()
            ms = 1000 * (t1 - t0) / (step - last)
            print(f"window batch {step:6d}  picks {(picks / step).tolist()}  {ms:.3f} ms/step", flush=True)
            t0, last = t1, step


if __name__ == "__main__":
    main()
