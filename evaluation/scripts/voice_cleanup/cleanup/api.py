import torch

from .chain import Chain
from .wishes import Wishes


class Api:
    def __init__(self, settings):
        self.chain = torch.compile(Chain(settings["floor"], settings["clip"] // 8).eval())
        self.served, self.loudness = 0, torch.zeros(())

    @torch.inference_mode()
    def handle(self, query, clip):
        sound, loud = self.chain(clip, Wishes.parse(query))
        self.served += 1
        self.loudness += loud
        return sound
