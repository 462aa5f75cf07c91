import os

import torch

from tutor.positions import lessons
from tutor.judge import Judge


def main():
    count = int(os.environ.get("LESSONS", "8000"))
    torch.manual_seed(64)
    judge = Judge()
    running = 0.0
    for number, (boards, results) in enumerate(lessons(count)):
        loss = judge.learn(boards, results)
        if number % 250 == 0:
            running = loss.item()
            print(f"lesson {number}: {running:.3f}", flush=True)


if __name__ == "__main__":
    main()
