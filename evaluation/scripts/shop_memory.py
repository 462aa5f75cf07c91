"""Session memory of a web shop: per-shopper slots of item vectors, read and rewritten on every visit."""
import os
import time
import torch

torch.manual_seed(14)

SHOPPERS, SLOTS, DIM = 2000, 32, 48
VISITORS = 64


@torch.compile
def visit(memory, who, item, slot, keys):
    rows = memory.select(1, 0)
    rows.index_add_(0, who, 0.1 * torch.tanh(item))
    seen = memory[who]
    match = torch.softmax((seen * torch.tanh(item @ keys)[:, None]).sum(-1), dim=-1)
    recall = (match[..., None] * seen).sum(1)
    memory.index_put_((who, slot), torch.tanh(item + 0.3 * recall))
    return torch.sigmoid((recall * item).sum(-1))


def main():
    memory = 0.1 * torch.randn(SHOPPERS, SLOTS, DIM)
    keys = torch.randn(DIM, DIM) / DIM ** 0.5
    appeal = 0.0
    start = time.time()
    for tick in range(int(os.environ.get("STEPS", "3000"))):
        who = torch.randperm(SHOPPERS)[:VISITORS]
        slot = torch.randint(1, SLOTS, (VISITORS,))
        item = torch.randn(VISITORS, DIM)
        appeal = 0.99 * appeal + 0.01 * visit(memory, who, item, slot, keys).mean().item()
        if tick % 300 == 299:
            print(f"tick {tick + 1}  appeal {appeal:.4f}  memory {memory[::50].norm().item():.3f}  {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
