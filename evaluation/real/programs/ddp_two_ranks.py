"""Data-parallel training on two ranks under torchrun, the wrapped model compiled."""
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from steady import Steady, options
from torch.nn.parallel import DistributedDataParallel


def main():
    args = options(cpu=300, cuda=800)
    on_gpu = args.device == "cuda"
    dist.init_process_group("nccl" if on_gpu else "gloo")
    rank = dist.get_rank()
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.manual_seed(rank)
    width = 1024 if on_gpu else 128
    encoder = nn.TransformerEncoderLayer(width, 8, 2 * width, dropout=0.0, batch_first=True)
    model = nn.Sequential(nn.TransformerEncoder(encoder, 3), nn.Linear(width, 32)).to(args.device)
    ddp = DistributedDataParallel(model)
    compiled = torch.compile(ddp)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(8, 16 if on_gpu else 4, 64, width, device=args.device)
    y = torch.randint(0, 32, (8, 16 if on_gpu else 4, 64), device=args.device)
    steady = Steady(args.steps, args.device)
    for step in range(args.steps):
        logits = compiled(x[step % 8])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), y[step % 8].flatten())
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        steady.step()
    if rank == 0:
        steady.show()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
