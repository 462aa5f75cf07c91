import os

import torch

from .net import Vocoder


class Session:
    """One training, that can go on where an earlier one stopped."""

    def __init__(self, folder, rate=0.02, fast=True):
        self.path = os.path.join(folder, "last.pt")
        self.net = Vocoder()
        if fast:
            self.net = torch.compile(self.net)
        self.rate = rate
        self.done = 0
        self.resume()

    def resume(self):
        optimizer = None
        if os.path.exists(self.path):
            state = torch.load(self.path)
            self.done = state["done"]
            weights = {name.removeprefix("_orig_mod."): value for name, value in state["net"].items()}
            self.net = Vocoder()
            self.net.load_state_dict(weights)
            optimizer = state["optimizer"]
        self.optimizer = torch.optim.Adam(self.net.parameters(), lr=self.rate)
        if optimizer:
            self.optimizer.load_state_dict(optimizer)

    def save(self):
        torch.save({"net": self.net.state_dict(), "optimizer": self.optimizer.state_dict(), "done": self.done}, self.path)

    def learn(self, loudness, sound):
        heard = self.net(loudness)
        loss = (heard - sound).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.done += 1
        return loss
