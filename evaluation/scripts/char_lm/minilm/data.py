import torch

TEXT = (
    "it was the best of times, it was the worst of times, it was the age of wisdom, "
    "it was the age of foolishness, it was the epoch of belief, it was the epoch of incredulity "
) * 40


class CharBatches:
    """Endless random windows of a text, already as indices."""

    def __init__(self, block, batch, seed=0):
        self.letters = sorted(set(TEXT))
        table = {letter: i for i, letter in enumerate(self.letters)}
        self.data = torch.tensor([table[letter] for letter in TEXT])
        self.block, self.batch = block, batch
        self.generator = torch.Generator().manual_seed(seed)
        self.span = torch.arange(block + 1)

    def __iter__(self):
        return self

    def __next__(self):
        start = torch.randint(
            len(self.data) - self.block - 1, (self.batch, 1), generator=self.generator
        )
        window = self.data[start + self.span]
        return window[:, :-1], window[:, 1:]
