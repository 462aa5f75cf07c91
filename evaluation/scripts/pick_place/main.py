"""Clone the behaviour of an operator who picks and places with a robot arm."""
import configparser
import os

import torch
from torch.nn import functional as F

from episodes import EpisodeBuffer
from policy import PlacePolicy

DEFAULTS = """
[train]
batch = 512
rate = 1e-3
report = 500
"""


class Cloner:
    def __init__(self, config):
        self.batch = config.getint("train", "batch")
        self.report = config.getint("train", "report")
        self.buffer = EpisodeBuffer()
        self.policy = torch.compile(PlacePolicy())
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=config.getfloat("train", "rate"))

    def update(self):
        joints, camera, gripper, action = self.buffer.sample(self.batch)
        loss = F.smooth_l1_loss(self.policy(joints, camera, gripper), action)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, updates):
        for n in range(1, updates + 1):
            loss = self.update()
            if n % self.report == 0:
                print(f"update {n}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    settings = configparser.ConfigParser()
    settings.read_string(DEFAULTS)
    Cloner(settings).run(int(os.environ.get("UPDATES", 3000)))
