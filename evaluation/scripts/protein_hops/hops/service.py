import torch

from .network import Body, Head


class Annotator:
    def __init__(self, features):
        self.body = Body(features).eval()
        self.head = Head(features).eval()
        self.stages = [torch.compile(self.body), torch.compile(self.head)]

    def __call__(self, item):
        for stage in self.stages:
            item = stage(item)
        return item.argmax(dim=-1)
