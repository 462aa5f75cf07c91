"""Residual vector quantiser of a neural speech codec: fit the codebooks by mini-batch k-means on
the latent frames of the encoder."""
import os
import time

import torch

SMALL = os.environ.get("SMALL") == "1"
STEPS = int(os.environ.get("STEPS", "300"))
FRAMES = 512 if SMALL else 16384
CODES = 64 if SMALL else 1024
DIM, STAGES = 64, 4
DECAY = 0.99
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def nearest(x, book):
    distance = (x[:, None, :] - book[None, :, :]).square().sum(-1)
    return distance.argmin(-1)


@torch.compile
def quantise_and_count(x, books):
    residual = x
    sums, counts = [], []
    for stage in range(STAGES):
        book = books[stage]
        code = nearest(residual, book)
        sums.append(torch.zeros_like(book).index_add(0, code, residual))
        ones = torch.ones_like(code, dtype=book.dtype)
        counts.append(torch.zeros(CODES, device=book.device).index_add(0, code, ones))
        residual = residual - book[code]
    return torch.stack(sums), torch.stack(counts), residual.square().mean()


@torch.compile
def update(books, mass, total, sums, counts):
    mass = DECAY * mass + (1 - DECAY) * counts
    total = DECAY * total + (1 - DECAY) * sums
    fresh = total / mass.clamp_min(1e-3)[..., None]
    return torch.where(mass[..., None] > 1e-2, fresh, books), mass, total


def latent_frames(mixing, gen):
    z = torch.randn(FRAMES, DIM // 2, device=device, generator=gen)
    return z @ mixing + 0.1 * torch.randn(FRAMES, DIM, device=device, generator=gen)


def main():
    gen = torch.Generator(device=device).manual_seed(21)
    mixing = torch.randn(DIM // 2, DIM, device=device, generator=gen) / 4
    shelf = [latent_frames(mixing, gen) for _ in range(8)]
    scale = torch.tensor([0.8, 0.5, 0.3, 0.2], device=device)[:, None, None]
    books = torch.randn(STAGES, CODES, DIM, device=device, generator=gen) * scale
    mass = torch.ones(STAGES, CODES, device=device)
    total = books.clone()

    half = STEPS // 2
    with torch.no_grad():
        for step in range(STEPS):
            if step == half:
                if device.type == "cuda":
                    torch.cuda.synchronize()
                t0 = time.perf_counter()
            sums, counts, err = quantise_and_count(shelf[step % len(shelf)], books)
            books, mass, total = update(books, mass, total, sums, counts)
    if device.type == "cuda":
        torch.cuda.synchronize()
    t1 = time.perf_counter()
    print(f"mse {err.item():.5f}")
    print(f"step_ms={(t1 - t0) * 1e3 / (STEPS - half):.3f}")


if __name__ == "__main__":
    main()
