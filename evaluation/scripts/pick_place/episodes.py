"""Demonstrations of picking and placing, kept as they came from the robot."""
import collections
import random

import numpy as np
import torch

Frame = collections.namedtuple("Frame", "joints camera gripper action")


class EpisodeBuffer:
    def __init__(self, frames=3000, joints=7, features=192, seed=1):
        rng = np.random.default_rng(seed)
        self.frames = collections.deque(maxlen=frames)
        for _ in range(frames):
            self.frames.append(Frame(rng.standard_normal(joints, dtype=np.float32),
                                     rng.standard_normal(features, dtype=np.float32),
                                     rng.random(2, dtype=np.float32),
                                     rng.standard_normal(joints, dtype=np.float32)))
        self.draw = random.Random(seed)

    def sample(self, size):
        batch = Frame(*zip(*self.draw.sample(self.frames, size)))
        return tuple(torch.tensor(values) for values in batch)
