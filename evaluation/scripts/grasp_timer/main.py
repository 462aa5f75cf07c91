"""Rank candidate grasps of a gripper on depth patches."""
import argparse

import torch

from grasp import GraspRanker, sections


@torch.inference_mode()
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scenes", type=int, default=9000)
    parser.add_argument("--candidates", type=int, default=256)
    args = parser.parse_args()
    torch.manual_seed(6)
    ranker = GraspRanker().eval()
    rank = torch.compile(ranker)
    heaps = [torch.randn(args.candidates, 3, 256).mul_(0.4) for _ in range(6)]
    best = torch.zeros(())
    for scene in range(args.scenes):
        quality, _ = rank(heaps[scene % len(heaps)])
        best = torch.maximum(best, quality.max())
    print("best grasp", best.item())
    for name, spent in sections.totals().items():
        print(f"{name:>10}: {spent:.2f} s")


if __name__ == "__main__":
    main()
