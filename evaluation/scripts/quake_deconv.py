"""Receiver-function style deconvolution of a seismometer array against the source wavelet."""
import os
import time

import torch

STATIONS, RECORD, WAVELET = 40, 3600, 500
PADDED = RECORD + WAVELET - 1


class Deconvolver:
    def __init__(self, wavelet, water=0.01):
        spec = torch.fft.rfft(wavelet, n=PADDED)
        power = spec.real.square() + spec.imag.square()
        floor = torch.maximum(power, water * power.max())
        self.re = spec.real / floor
        self.im = -spec.imag / floor
        freq = torch.linspace(0.0, 1.0, PADDED // 2 + 1)
        self.lowpass = torch.exp(-((freq / 0.25) ** 2))

    def __call__(self, traces):
        spec = torch.fft.rfft(traces, n=PADDED)
        re = (spec.real * self.re - spec.imag * self.im) * self.lowpass
        im = (spec.real * self.im + spec.imag * self.re) * self.lowpass
        return torch.fft.irfft(torch.complex(re, im), n=PADDED)[:, :RECORD]


def precondition(traces, taper):
    centred = traces - traces.mean(-1, keepdim=True)
    scale = centred.square().mean(-1, keepdim=True).sqrt() + 1e-6
    return torch.tanh(centred / (3.0 * scale)) * 3.0 * scale * taper


def record(gen, wavelet):
    spikes = torch.zeros(STATIONS, RECORD)
    where = torch.randint(200, RECORD - WAVELET, (STATIONS, 12), generator=gen)
    spikes.scatter_(1, where, torch.randn(STATIONS, 12, generator=gen))
    n = 8192
    full = torch.fft.irfft(torch.fft.rfft(spikes, n=n) * torch.fft.rfft(wavelet, n=n), n=n)
    return full[:, :RECORD] + 0.01 * torch.randn(STATIONS, RECORD, generator=gen)


def main():
    steps = int(os.environ.get("STEPS", "240"))
    gen = torch.Generator().manual_seed(2011)
    t = torch.arange(WAVELET) / 50.0
    wavelet = torch.exp(-t) * torch.sin(2 * torch.pi * 1.2 * t)
    events = [record(gen, wavelet) for _ in range(6)]
    taper = torch.hann_window(RECORD).clamp(max=0.2) * 5.0

    deconvolve = Deconvolver(wavelet)

    @torch.compile
    def process(traces):
        rf = deconvolve(precondition(traces, taper))
        envelope = rf.abs().amax(-1)
        return rf / (envelope[:, None] + 1e-6), envelope

    stack = torch.zeros(RECORD)
    t0, t_half = time.process_time(), None
    with torch.inference_mode():
        for step in range(steps):
            if step == steps // 2:
                t_half = time.process_time()
            rf, envelope = process(events[step % len(events)])
            stack += rf.mean(0)
    now = time.process_time()
    print(f"stack peak {stack.abs().max() / steps:.4f} at sample {int(stack.abs().argmax())}, padded to {PADDED}")
    print(f"{1e3 * (now - t_half) / (steps - steps // 2):.3f} ms/step, total {now - t0:.1f} s cpu")


if __name__ == "__main__":
    main()
