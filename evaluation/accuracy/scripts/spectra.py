"""The power of a signal's windows by frequency."""

import torch


@torch.compile
def power(signal):
    windows = signal.unfold(-1, 64, 32) * torch.hann_window(64)
    spectrum = torch.fft.rfft(windows)
    return spectrum.abs().square(), spectrum.angle().cos()


torch.manual_seed(0)
for _ in range(2000):
    power(torch.randn(4, 512))
