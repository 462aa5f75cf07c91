import torch


class Scorer:
    def __init__(self, chain):
        self.chain = chain.eval()
        self.advance = torch.compile(self.chain, fullgraph=True)

    @torch.no_grad()
    def score(self, reads):
        alpha = self.chain.start + self.chain.emit[reads[0]]
        for letters in reads[1:]:
            alpha = self.advance(alpha, letters)
        return alpha.logsumexp(1)
