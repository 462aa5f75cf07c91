"""Envelope statistics of binary-inspiral strain over a bank of orientations."""
import math
import statistics
import time

import torch

H0 = 4e-21          # peak strain at the reference distance
ORIENTATIONS = 64
SAMPLES = 4096


def orientations(n, gen):
    cosi = torch.rand(n, 1, generator=gen) * 2 - 1
    psi = torch.rand(n, 1, generator=gen) * math.pi
    return cosi, psi


def chirp(mass, n=SAMPLES):
    t = torch.linspace(1.0, 0.02, n)
    phase = -2.0 * (t / (5 * mass)) ** 0.625 * 40
    amp = H0 * t ** -0.25 * 0.4
    return amp * torch.cos(phase), amp * torch.sin(phase)


def project(hc, hs, cosi, psi):
    plus = 0.5 * (1 + cosi * cosi) * hc
    cross = cosi * hs
    c, s = torch.cos(2 * psi), torch.sin(2 * psi)
    return c * plus + s * cross, c * cross - s * plus


def envelope(hc, hs, cosi, psi, floor):
    hp, hx = project(hc, hs, cosi, psi)
    inst = torch.sqrt(hp * hp + hx * hx)
    linear = torch.sqrt(hp * hp)
    ellipse = torch.sqrt(hx * hx + floor * floor)
    contrast = (inst - linear) / (ellipse + floor)
    rms = torch.sqrt((inst * inst).mean(1))
    return rms, contrast.mean(1), inst.amax(1)


class Survey:
    def __init__(self):
        self.gen = torch.Generator().manual_seed(12)
        self.templates = [chirp(m) for m in (0.05, 0.08, 0.11, 0.2)]
        self.analyse = torch.compile(envelope)
        self.floor = torch.tensor(0.01 * H0)

    def scan(self, k):
        hc, hs = self.templates[k % len(self.templates)]
        cosi, psi = orientations(ORIENTATIONS, self.gen)
        return self.analyse(hc, hs, cosi, psi, self.floor)


def main():
    survey = Survey()
    with torch.inference_mode():
        for k in range(5):
            survey.scan(k)
        laps = []
        for k in range(300):
            t0 = time.perf_counter()
            rms, contrast, peak = survey.scan(k)
            laps.append(time.perf_counter() - t0)
            if k % 75 == 0:
                print(f"scan {k:3d} peak/h0 {peak.max().item() / H0:.3f} "
                      f"contrast {contrast.mean().item():+.4f}")
    print(f"scan takes {statistics.median(laps) * 1e3:.2f} ms")


if __name__ == "__main__":
    main()
