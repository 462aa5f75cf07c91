"""A small transformer block in training, with the usual torch.compile options."""

import argparse

import torch
import torch.nn.functional as F


class TinyBlock(torch.nn.Module):
    def __init__(self, hidden, heads=4):
        super().__init__()
        self.heads = heads
        self.norm_1 = torch.nn.LayerNorm(hidden)
        self.norm_2 = torch.nn.LayerNorm(hidden)
        self.qkv = torch.nn.Linear(hidden, 3 * hidden)
        self.out = torch.nn.Linear(hidden, hidden)
        self.up = torch.nn.Linear(hidden, 4 * hidden)
        self.down = torch.nn.Linear(4 * hidden, hidden)

    def forward(self, x):
        batch, seq, hidden = x.shape
        q, k, v = self.qkv(self.norm_1(x)).chunk(3, dim=-1)
        q, k, v = (
            part.view(batch, seq, self.heads, hidden // self.heads).transpose(1, 2)
            for part in (q, k, v)
        )
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, seq, hidden))
        return x + self.down(F.gelu(self.up(self.norm_2(x))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", default="default")
    parser.add_argument("--dynamic", action="store_true", default=None)
    parser.add_argument("--fullgraph", action="store_true")
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--seq", type=int, default=128)
    parser.add_argument("--hidden", type=int, default=256)
    parser.add_argument("--iters", type=int, default=1000)
    parser.add_argument("--warmup", type=int, default=3)
    args = parser.parse_args()

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = TinyBlock(args.hidden).to(device)
    step_model = torch.compile(
        model, mode=args.mode, dynamic=args.dynamic, fullgraph=args.fullgraph
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(args.batch, args.seq, args.hidden, device=device)
    for step in range(args.warmup + args.iters):
        loss = (step_model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
