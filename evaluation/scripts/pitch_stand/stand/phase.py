"""Phases without their jumps."""
import numpy as np
import torch


def straighten(angle):
    return torch.from_numpy(np.unwrap(angle.numpy(), axis=-1))
