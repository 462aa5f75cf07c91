import torch


class Table:
    """All boards side by side; a full board starts again."""

    def __init__(self, games, size=9):
        self.stones = torch.zeros(games, size * size)
        self.size, self.turn, self.played = size, 1.0, 0

    def planes(self):
        board = self.stones.view(-1, self.size, self.size)
        return torch.stack([(board == self.turn), (board == -self.turn), (board == 0)], 1).float()

    def play(self, policy):
        place = torch.multinomial(policy + 1e-9 * (self.stones == 0), 1)
        self.stones.scatter_(1, place, self.turn)
        self.turn, self.played = -self.turn, self.played + 1
        if self.played % 60 == 0:
            self.stones.zero_()
