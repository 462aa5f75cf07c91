"""Apply measured room responses to dry speech clips and keep loudness statistics."""
import os
import torch

torch.set_num_threads(1)
torch.manual_seed(2)

STEPS = int(os.environ.get("STEPS", "7000"))
CLIPS, CLIP_LEN, IR_LEN = 16, 12000, 4000
N_FFT = CLIP_LEN + IR_LEN - 1


def wet(dry, response, mix):
    spec = torch.fft.rfft(dry, n=N_FFT)
    tail = torch.fft.irfft(spec * response, n=N_FFT)[:, :CLIP_LEN]
    out = torch.tanh((1.0 - mix) * dry + mix * tail)
    rms = out.square().mean(dim=-1).sqrt()
    return out / (rms[:, None] + 1e-4), rms


wet = torch.compile(wet)

decay = torch.exp(-torch.arange(IR_LEN) / 600.0)
response = torch.fft.rfft(torch.randn(IR_LEN) * decay * 0.1, n=N_FFT)
clips = [torch.randn(CLIPS, CLIP_LEN) * 0.2 for _ in range(4)]
loudness = torch.zeros(CLIPS)

with torch.no_grad():
    for step in range(STEPS):
        out, rms = wet(clips[step % 4], response, 0.35)
        loudness.lerp_(rms, 0.05)

print(f"loudness {loudness.mean().item():.6f} peak {out.abs().max().item():.4f}")
