"""Far-field augmentation for a keyword-spotting corpus: convolve dry speech with room
impulse responses and bring the result back to the loudness of the dry take."""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
BATCH = 4 if SMALL else 256
RATE = 16000
CLIP = 3 * RATE
TAIL = int(1.5 * RATE)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def make_rooms(count, gen):
    t = torch.arange(TAIL) / RATE
    rt60 = torch.empty(count, 1).uniform_(0.2, 1.2, generator=gen)
    decay = torch.exp(-6.9 * t / rt60)
    rir = torch.randn(count, TAIL, generator=gen) * decay
    rir[:, 0] = 4.0
    return rir / rir.norm(dim=1, keepdim=True)


def make_speech(count, gen):
    t = torch.arange(CLIP) / RATE
    f0 = torch.empty(count, 1).uniform_(90, 260, generator=gen)
    env = torch.sin(3.1 * t).abs()
    x = torch.sin(6.2832 * f0 * t) * env
    return 0.1 * x + 0.01 * torch.randn(count, CLIP, generator=gen)


class RoomSimulator(torch.nn.Module):
    def __init__(self, clip, tail):
        super().__init__()
        self.clip = clip
        self.n = clip + tail - 1

    def forward(self, dry, rir):
        spec = torch.fft.rfft(dry, self.n) * torch.fft.rfft(rir, self.n)
        wet = torch.fft.irfft(spec, self.n)[:, : self.clip]
        level = dry.square().mean(1, keepdim=True) / (wet.square().mean(1, keepdim=True) + 1e-8)
        return torch.clamp(wet * level.sqrt(), -1.0, 1.0)


def main():
    gen = torch.Generator().manual_seed(7)
    rooms = make_rooms(2 * BATCH, gen).to(device)
    speech = make_speech(BATCH, gen).to(device)
    simulate = torch.compile(RoomSimulator(CLIP, TAIL).to(device))
    peak = torch.zeros((), device=device)

    half = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == half:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            first = step % BATCH
            wet = simulate(speech, rooms[first : first + BATCH].clone())
            peak = torch.maximum(peak, wet.amax())
    if device.type == "cuda":
        torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"peak {peak.item():.4f}")
    print(f"step_ms={(t1 - t0) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
