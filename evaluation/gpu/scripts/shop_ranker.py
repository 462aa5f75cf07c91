"""Online scoring of shop items: user and item vectors looked up in big tables, a small tower on top."""
import os
import time
import torch
import torch.nn as nn

torch.manual_seed(0)
dev = "cuda"
USERS, ITEMS, D = 12_000_000, 4_000_000, 64


class Tower(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2 * D + 1, 256), nn.GELU(), nn.LayerNorm(256),
                                 nn.Linear(256, 128), nn.GELU(), nn.LayerNorm(128), nn.Linear(128, 1))

    def forward(self, x):
        return torch.sigmoid(self.net(x)).squeeze(-1)


tower = Tower().to(dev).eval()


@torch.compile(mode="reduce-overhead")
def rank(user_table, item_table, users, items):
    u = user_table[users].unsqueeze(1).expand(-1, items.shape[1], -1)
    v = item_table[items]
    dot = (u * v).sum(-1, keepdim=True)
    score = tower(torch.cat([u, v, dot], -1))
    return score.topk(10, dim=1)


@torch.no_grad()
def main():
    user_table = torch.randn(USERS, D, device=dev) * 0.1
    item_table = torch.randn(ITEMS, D, device=dev) * 0.1
    t0 = time.time()
    total = 0.0
    for req in range(int(os.environ.get("STEPS", "10000"))):
        users = torch.randint(0, USERS, (64,), device=dev)
        items = torch.randint(0, ITEMS, (64, 200), device=dev)
        torch.compiler.cudagraph_mark_step_begin()
        best, where = rank(user_table, item_table, users, items)
        if req % 500 == 0:
            total += best.mean().item()
            print(f"request {req} mean top score {best.mean().item():.4f} {time.time() - t0:.1f}s", flush=True)
    torch.cuda.synchronize()
    print("done", total, time.time() - t0)


if __name__ == "__main__":
    main()
