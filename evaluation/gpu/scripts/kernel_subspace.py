"""Leading subspace of a large spectral library by block power iteration."""
import os
import time

import torch

small = os.environ.get("SMALL") == "1"
device = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = int(os.environ.get("STEPS", 3500))
SPECTRA, BANDS, RANK = (256, 128, 16) if small else (16384, 8192, 2048)


@torch.compile
def sweep(library, basis):
    fresh = library.T @ (library @ basis)
    size = torch.linalg.vector_norm(fresh, dim=0, keepdim=True)
    return fresh / size, size.mean()


@torch.no_grad()
def main():
    torch.manual_seed(1)
    torch.set_float32_matmul_precision("high")
    library = torch.randn(SPECTRA, BANDS, device=device) * torch.linspace(2.0, 0.1, BANDS, device=device)
    basis = torch.linalg.qr(torch.randn(BANDS, RANK, device=device)).Q.contiguous()
    began = time.perf_counter()
    for step in range(STEPS):
        basis, size = sweep(library, basis)
        if step % 500 == 499:
            basis = torch.linalg.qr(basis).Q.contiguous()
        if step % 250 == 0:
            print(f"sweep {step:5d} mean singular value {size.sqrt().item():.3f} ({time.perf_counter() - began:.1f} s)")
    print("orthogonality", float((basis.T @ basis - torch.eye(RANK, device=device)).abs().max()))


if __name__ == "__main__":
    main()
