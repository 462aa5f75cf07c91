import collections

import torch

from .net import TeamNet


class Service:
    def __init__(self):
        self.net = TeamNet().eval()
        self.route = torch.compile(self.net)
        self.teams = collections.Counter()
        self.routed = 0

    @torch.inference_mode()
    def warm_up(self):
        """Touch all weights once; nothing should compile before the first customer."""
        torch.compiler.set_stance("force_eager")
        for _ in range(3):
            self.route(torch.zeros(16, 48, 32))

    @torch.inference_mode()
    def answer(self, words):
        return self.route(words).argmax(-1)

    async def serve(self, inbox):
        while True:
            words = await inbox.get()
            team = self.answer(words)
            self.routed += len(team)
            self.teams[int(team[0])] += 1
            inbox.task_done()

    def busiest(self):
        return self.teams.most_common(1)[0][0]
