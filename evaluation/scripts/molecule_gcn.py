import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F


class MessagePassing(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.message = nn.Linear(2 * width, width)
        self.update = nn.Linear(2 * width, width)

    def forward(self, nodes, source, target):
        pair = torch.cat([nodes[source], nodes[target]], dim=-1)
        message = F.softplus(self.message(pair)) * torch.sigmoid(pair.mean(-1, keepdim=True))
        total = torch.zeros_like(nodes).index_add(0, target, message)
        return nodes + F.silu(self.update(torch.cat([nodes, total], dim=-1)))


class MoleculeNet(nn.Module):
    def __init__(self, kinds=8, width=48, rounds=2):
        super().__init__()
        self.embed = nn.Embedding(kinds, width)
        self.rounds = nn.ModuleList(MessagePassing(width) for _ in range(rounds))
        self.read = nn.Linear(width, 1)

    def forward(self, kinds, source, target, graph, graphs: int):
        nodes = self.embed(kinds)
        for layer in self.rounds:
            nodes = layer(nodes, source, target)
        energy = self.read(nodes).squeeze(-1)
        return torch.zeros(graphs).index_add(0, graph, energy)


def batch(molecules=32, atoms=16, bonds=24):
    kinds = torch.randint(8, (molecules * atoms,))
    offset = torch.arange(molecules).repeat_interleave(bonds) * atoms
    source = torch.randint(atoms, (molecules * bonds,)) + offset
    target = torch.randint(atoms, (molecules * bonds,)) + offset
    graph = torch.arange(molecules).repeat_interleave(atoms)
    return kinds, source, target, graph, torch.randn(molecules)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=36000)
    args = parser.parse_args()
    torch.manual_seed(5)
    model = MoleculeNet()
    predict = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    data = [batch() for _ in range(8)]
    for i in range(args.steps):
        kinds, source, target, graph, label = data[i % len(data)]
        loss = F.smooth_l1_loss(predict(kinds, source, target, graph, 32), label)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("final loss", loss.item())


if __name__ == "__main__":
    main()
