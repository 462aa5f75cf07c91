import torch


class LeafVeins(torch.utils.data.Dataset):
    """Nodes with their degree, and the far end of each vein in the order of the nodes."""

    def __init__(self, leaves, nodes=200, veins=700, seed=9):
        draw = torch.Generator().manual_seed(seed)
        self.leaves = []
        for leaf in range(leaves):
            near = torch.randint(nodes, (veins,), generator=draw)
            ends = torch.randint(nodes, (veins,), generator=draw)
            h = torch.randn(nodes, 16, generator=draw)
            self.leaves.append((h, torch.bincount(near, minlength=nodes), ends, leaf % 5))

    def __len__(self):
        return len(self.leaves)

    def __getitem__(self, i):
        return self.leaves[i]
