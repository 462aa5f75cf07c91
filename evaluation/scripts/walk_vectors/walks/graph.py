import random


class Graph:
    def __init__(self, nodes, seed, degree=6):
        rng = random.Random(seed)
        self.near = {node: set() for node in range(nodes)}
        for node in range(nodes):
            for _ in range(degree):
                other = (node + rng.randint(1, 40)) % nodes if rng.random() < 0.8 else rng.randrange(nodes)
                if other != node:
                    self.near[node].add(other)
                    self.near[other].add(node)

    def __len__(self):
        return len(self.near)

    def around(self, node):
        return sorted(self.near[node])
