import os
import torch
import torch.nn.functional as F

torch.set_num_threads(1)
torch.manual_seed(11)

STEPS = int(os.environ.get("STEPS", "4200"))
PAIRS = 4
CHANNELS = 16
SIZE = 128


def pixel_grid(n, size):
    ys, xs = torch.meshgrid(
        torch.linspace(-1, 1, size), torch.linspace(-1, 1, size), indexing="ij"
    )
    return torch.stack([xs, ys], dim=-1).expand(n, size, size, 2).contiguous()


sample_at = torch.compiler.disable(F.grid_sample)


@torch.compile
def photometric_cost(left, right, flow, grid):
    where = grid + flow * (2.0 / (SIZE - 1))
    warped = sample_at(right, where, mode="bilinear", padding_mode="zeros", align_corners=True)
    inside = (where.abs() <= 1).all(dim=-1).unsqueeze(1)
    err = torch.sqrt((warped - left).square() + 1e-6)
    return (err * inside).mean(dim=1)


left = torch.rand(PAIRS, CHANNELS, SIZE, SIZE)
right = torch.rand(PAIRS, CHANNELS, SIZE, SIZE)
flows = [2.0 * torch.randn(PAIRS, SIZE, SIZE, 2) for _ in range(8)]
grid = pixel_grid(PAIRS, SIZE)

total = 0.0
with torch.no_grad():
    for step in range(STEPS):
        cost = photometric_cost(left, right, flows[step % len(flows)], grid)
        total += cost[0, 64, 64].item()

print("mean centre cost", total / STEPS)
