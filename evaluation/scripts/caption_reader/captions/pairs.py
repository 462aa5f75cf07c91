from collections import Counter

import torch


class Pairs:
    """Byte-pair merges, learnt from a sample of text."""

    def __init__(self, ranks, longest=96):
        self.ranks, self.longest = ranks, longest
        self.size = 257 + len(ranks)
        self.numbers = {bytes([i]): i + 1 for i in range(256)}
        for rank, (left, right) in enumerate(ranks):
            self.numbers.setdefault(left + right, 257 + rank)

    @classmethod
    def learn(cls, texts, merges):
        words = [[bytes([b]) for b in text.encode()] for text in texts]
        ranks = {}
        while len(ranks) < merges:
            seen = Counter(pair for word in words for pair in zip(word, word[1:]))
            best = seen.most_common(1)[0][0]
            ranks[best] = len(ranks)
            words = [cls.merged(word, best) for word in words]
        return cls(ranks)

    @staticmethod
    def merged(word, pair):
        out, i = [], 0
        while i < len(word):
            if tuple(word[i:i + 2]) == pair:
                out.append(word[i] + word[i + 1])
                i += 2
            else:
                out.append(word[i])
                i += 1
        return out

    def encode(self, text):
        word = [bytes([b]) for b in text.encode()]
        while len(word) > 1:
            rank, pair = min((self.ranks.get(p, 1 << 30), p) for p in zip(word, word[1:]))
            if rank == 1 << 30:
                break
            word = self.merged(word, pair)
        return [self.numbers[part] for part in word][: self.longest]

    def collate(self, batch):
        rows = [self.encode(text) for text, _ in batch]
        tokens = torch.zeros(len(rows), self.longest, dtype=torch.long)
        for row, numbers in zip(tokens, rows):
            row[: len(numbers)] = torch.tensor(numbers)
        return tokens, torch.tensor([len(r) for r in rows]), torch.tensor([label for _, label in batch])
