from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F

from vendor_eye import load_eye


@dataclass
class PickerConfig:
    channels: int = 16
    side: int = 64
    grippers: int = 6


class Picker(nn.Module):
    """Where to grasp, and with which gripper."""

    def __init__(self, config):
        super().__init__()
        self.eye = load_eye(config.channels, config.side)
        self.weigh = nn.Parameter(torch.randn(config.channels, 1, 1))
        self.choose = nn.Linear(config.channels, config.grippers)
        self.reach = nn.Parameter(torch.randn(config.grippers, 2))

    def forward(self, depth):
        light = depth * (1 - 0.1 * depth) + 0.02
        seen = self.eye(light)
        score = (seen * self.weigh).sum(1)
        score = score - 0.1 * score.abs()
        place = torch.stack((score.amax(2).argmax(1), score.amax(1).argmax(1)), 1)
        gripper = self.choose(seen.mean((2, 3))).argmax(1)
        hand = F.one_hot(gripper).float()
        reach = hand @ self.reach[:hand.shape[1]]
        return place + reach
