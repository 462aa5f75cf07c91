import torch


class Genome:
    def __init__(self, letters, length, seed=5):
        self.source = torch.Generator().manual_seed(seed)
        self.letters, self.length = letters, length

    def reads(self, count):
        """Positions first: each row is one position of all reads."""
        reads = torch.randint(self.letters, (self.length + 1, count), generator=self.source)
        return [row.clone() for row in reads]
