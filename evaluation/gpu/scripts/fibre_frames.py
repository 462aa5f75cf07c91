"""Growth of a leaf-blade shell: fibre frames carried along by the tissue velocity gradient.

Every patch of tissue has a 3x3 material frame.  A time step advects the frames with the
local velocity gradient, makes them orthonormal again and updates turgor and stiffness.
"""
import os
import time

import torch

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
PATCHES = 24 if SMALL else 256
FIBRES = 16 if SMALL else 512
DT = 0.02


def orthonormal(frames):
    q, r = torch.linalg.qr(frames)
    sign = torch.where(torch.diagonal(r, dim1=-2, dim2=-1) < 0, -1.0, 1.0)
    return q * sign[:, None, :]


@torch.compile
def grow(frames, turgor, stiff, grad_v, fibres):
    """One step; fibres are unit vectors in the material frame of each patch."""
    rate = grad_v * (1.0 + 0.3 * torch.tanh(turgor))[:, None, None]
    frames = frames + DT * (rate[:, :, :, None] * frames[:, None, :, :]).sum(2)
    frames = orthonormal(frames)
    world = (frames[:, None, :, :] * fibres[:, :, None, :]).sum(-1)
    strain = (world[:, :, None, :] * rate[:, None, :, :]).sum(-1)
    strain = (strain * world).sum(-1)
    load = torch.relu(strain).square().mean(1) - 0.1 * torch.relu(-strain).mean(1)
    stiff = stiff + DT * (0.8 * load - 0.05 * (stiff - 1.0))
    turgor = turgor + DT * (torch.sigmoid(2.0 - stiff) - 0.4 * turgor)
    return frames, turgor, stiff


def tissue(gen, device):
    frames = torch.eye(3).expand(PATCHES, 3, 3).clone()
    frames = frames + 0.1 * torch.randn(PATCHES, 3, 3, generator=gen)
    grad_v = 0.4 * torch.randn(PATCHES, 3, 3, generator=gen)
    fibres = torch.randn(PATCHES, FIBRES, 3, generator=gen)
    fibres = fibres / fibres.norm(dim=-1, keepdim=True)
    turgor = torch.rand(PATCHES, generator=gen)
    stiff = torch.ones(PATCHES)
    return [t.to(device) for t in (frames, turgor, stiff, grad_v, fibres)]


def clock():
    if DEVICE.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main():
    gen = torch.Generator().manual_seed(21)
    frames, turgor, stiff, grad_v, fibres = tissue(gen, DEVICE)
    half = STEPS // 2
    t0 = clock()
    with torch.no_grad():
        for step in range(STEPS):
            if step == half:
                t0 = clock()
            frames, turgor, stiff = grow(frames, turgor, stiff, grad_v, fibres)
    ms = (clock() - t0) * 1e3 / (STEPS - half)
    defect = (frames.transpose(1, 2) @ frames - torch.eye(3, device=DEVICE)).abs().max().item()
    print(f"turgor {turgor.mean().item():.5f}  stiffness {stiff.mean().item():.5f}  defect {defect:.2e}")
    print(f"step_ms={ms:.3f}")


if __name__ == "__main__":
    main()
