"""Natural frequencies of randomly weakened trusses: assembles stiffness and solves for the lowest modes."""
import os
import time
import torch

torch.manual_seed(16)

NODES, BARS, TRUSSES = 64, 230, 3


@torch.compile
def frequencies(ends, coords, section, mass):
    a, b = coords[:, ends[:, 0]], coords[:, ends[:, 1]]
    span = b - a
    length = span.norm(dim=-1, keepdim=True)
    unit = span / length
    bar = (section / length.squeeze(-1))[..., None, None] * unit[..., :, None] * unit[..., None, :]
    n = coords.shape[1]
    stiff = coords.new_zeros(coords.shape[0], n, n, 3, 3)
    stiff = stiff.index_put((slice_index(coords), ends[None, :, 0], ends[None, :, 0]), bar, accumulate=True)
    stiff = stiff.index_put((slice_index(coords), ends[None, :, 1], ends[None, :, 1]), bar, accumulate=True)
    stiff = stiff.index_put((slice_index(coords), ends[None, :, 0], ends[None, :, 1]), -bar, accumulate=True)
    stiff = stiff.index_put((slice_index(coords), ends[None, :, 1], ends[None, :, 0]), -bar, accumulate=True)
    dense = stiff.permute(0, 1, 3, 2, 4).reshape(coords.shape[0], 3 * n, 3 * n)
    scale = mass.rsqrt().repeat_interleave(3, dim=-1)
    squared = torch.linalg.eigvalsh(dense * scale[:, :, None] * scale[:, None, :])
    return squared.clamp(min=0.0).sqrt()


def slice_index(coords):
    return torch.arange(coords.shape[0])[:, None]


def main():
    ends = torch.stack([torch.randperm(NODES)[:2] for _ in range(BARS)])
    layout = torch.rand(NODES, 3) * 10.0
    lowest = []
    start = time.time()
    for step in range(int(os.environ.get("STEPS", "2500"))):
        coords = layout + 0.02 * torch.randn(TRUSSES, NODES, 3)
        section = 1.0 + torch.rand(TRUSSES, BARS)
        mass = 1.0 + 0.2 * torch.rand(TRUSSES, NODES)
        modes = frequencies(ends, coords, section, mass)
        lowest.append(modes[:, 10].mean().item())
        if step % 250 == 249:
            print(f"{step + 1:5d}  tenth mode {sum(lowest[-250:]) / 250:.4f}  top {modes.amax().item():.3f}  "
                  f"{time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
