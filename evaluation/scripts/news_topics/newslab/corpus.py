import torch


class Wire:
    """Made-up articles: each topic prefers some words."""

    def __init__(self, articles, held_out, words, length, topics):
        total = articles + held_out
        self.topic = torch.randint(0, topics, (total,))
        common = torch.randint(0, words, (total, length))
        own = self.topic[:, None] * 40 + torch.randint(0, 40, (total, length))
        self.text = torch.where(torch.rand(total, length) < 0.25, own, common)
        self.train = slice(0, articles)
        self.test = slice(articles, total)

    def batches(self, part, size):
        text, topic = self.text[part], self.topic[part]
        for start in range(0, len(text), size):
            yield text[start:start + size], topic[start:start + size]
