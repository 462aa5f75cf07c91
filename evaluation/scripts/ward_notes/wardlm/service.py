from collections import Counter

import torch


class Triage:
    def __init__(self, model, levels):
        self.levels = levels
        self.model = torch.compile(model.eval())
        self.given = Counter()

    @torch.inference_mode()
    def answer(self, notes):
        scores = self.model(notes)
        for level in scores.argmax(-1).tolist():
            self.given[self.levels[level]] += 1
        return scores
