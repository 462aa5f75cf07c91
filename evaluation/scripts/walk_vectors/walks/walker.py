import random

import torch


class Walker:
    """Second-order walks: p for going back, q for going far."""

    def __init__(self, graph, seed, p=0.7, q=2.0, length=14, walks=48, window=2, others=6):
        self.graph, self.rng = graph, random.Random(seed)
        self.p, self.q, self.length, self.walks = p, q, length, walks
        self.window, self.others = window, others

    def weight(self, before, node):
        if node == before:
            return 1 / self.p
        return 1.0 if node in self.graph.near[before] else 1 / self.q

    def walk(self, node):
        path = [node, self.rng.choice(self.graph.around(node))]
        while len(path) < self.length:
            choices = self.graph.around(path[-1])
            weights = [self.weight(path[-2], choice) for choice in choices]
            path.append(self.rng.choices(choices, weights)[0])
        return path

    def pairs(self, path):
        for i, centre in enumerate(path):
            for j in range(max(0, i - self.window), min(len(path), i + self.window + 1)):
                if i != j:
                    yield centre, path[j]

    def rounds(self, count):
        for _ in range(count):
            found = []
            for _ in range(self.walks):
                found.extend(self.pairs(self.walk(self.rng.randrange(len(self.graph)))))
            centre, context = torch.tensor(found).unbind(1)
            yield centre, context, torch.randint(len(self.graph), (len(found), self.others))
