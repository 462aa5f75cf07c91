"""A GPT-2-sized model in training: 12 layers of 768, vocabulary 50257, AdamW, bf16 on a GPU.

The last line of its output is the mean step of its second half, in ms by the host's clock.
"""

import argparse
import json
import math
import time

import torch
import torch.nn.functional as F


class Block(torch.nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_1, self.norm_2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv = torch.nn.Linear(width, 3 * width)
        self.out = torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def forward(self, x):
        batch, seq, width = x.shape
        heads = [
            part.view(batch, seq, self.heads, -1).transpose(1, 2)
            for part in self.qkv(self.norm_1(x)).split(width, dim=-1)
        ]
        attended = F.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, seq, width))
        return x + self.down(F.gelu(self.up(self.norm_2(x)), approximate="tanh"))


class GPT(torch.nn.Module):
    def __init__(self, layers, width, heads, vocabulary=50257, context=1024):
        super().__init__()
        self.token = torch.nn.Embedding(vocabulary, width)
        self.position = torch.nn.Embedding(context, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.token.weight
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.02 / math.sqrt(2 * layers))

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.norm(x))
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    on_gpu = torch.cuda.is_available()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--width", type=int, default=768)
    parser.add_argument("--heads", type=int, default=12)
    parser.add_argument("--batch", type=int, default=8 if on_gpu else 1)
    parser.add_argument("--seq", type=int, default=512 if on_gpu else 64)
    parser.add_argument("--iters", type=int, default=2000)
    args = parser.parse_args()
    torch.manual_seed(0)
    device = "cuda" if on_gpu else "cpu"
    model = GPT(args.layers, args.width, args.heads).to(device)
    step_model = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
    tokens = torch.randint(0, 50257, (args.batch, args.seq + 1), device=device)
    began = time.perf_counter()
    for step in range(args.iters):
        with torch.autocast(device, dtype=torch.bfloat16, enabled=on_gpu):
            loss = step_model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step % 100 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
        if step + 1 == args.iters // 2:
            loss.item()  # waits for the device
            began = time.perf_counter()
    loss.item()
    step_ms = 1e3 * (time.perf_counter() - began) / (args.iters - args.iters // 2)
    print(json.dumps({"step_ms": step_ms}), flush=True)


if __name__ == "__main__":
    main()
