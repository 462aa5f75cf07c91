import os
import torch

torch.set_num_threads(1)
torch.manual_seed(29)

STEPS = int(os.environ.get("STEPS", "1700"))
FRAMES = 12
HEIGHT = 1024
WIDTH = 1024


@torch.compile
def tone_map(radiance, exposure, out):
    lit = radiance * exposure
    mapped = lit * (2.51 * lit + 0.03) / (lit * (2.43 * lit + 0.59) + 0.14)
    return out.copy_(mapped.clamp(0, 1))


clip = 4 * torch.rand(FRAMES, HEIGHT, WIDTH)
exposures = torch.linspace(0.2, 2.0, 16)

shown = torch.empty_like(clip)
probe = 0.0
for step in range(STEPS):
    tone_map(clip, exposures[step % 16], shown)
    probe += shown[3, 100, 100].item()

print("probe", probe / STEPS)
