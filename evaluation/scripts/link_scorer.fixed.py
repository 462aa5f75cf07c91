"""Score candidate links between museum artefacts and find sites."""
import os
import torch
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(11)

STEPS = int(os.environ.get("STEPS", "4000"))
BATCH = 384
ARTEFACTS = 3000
SITES = 400
DIM = 64
RELATIONS = 40


class LinkScorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(24, DIM)
        self.right = nn.Linear(12, DIM)
        self.pair = nn.Bilinear(DIM, DIM, RELATIONS)
        self.norm = nn.LayerNorm(RELATIONS)
        self.head = nn.Linear(RELATIONS, 5)

    def forward(self, artefact, site):
        a = torch.tanh(self.left(artefact))
        s = torch.tanh(self.right(site))
        w = self.pair.weight.permute(1, 0, 2).reshape(DIM, RELATIONS * DIM)
        h = ((a @ w).view(-1, RELATIONS, DIM) * s.unsqueeze(1)).sum(-1) + self.pair.bias
        h = torch.relu(self.norm(h))
        return self.head(h)


def make_tables():
    artefacts = torch.randn(ARTEFACTS, 24)
    sites = torch.randn(SITES, 12)
    truth = torch.randint(0, 5, (ARTEFACTS, SITES))
    return artefacts, sites, truth


def main():
    artefacts, sites, truth = make_tables()
    scorer = LinkScorer()
    opt = torch.optim.SGD(scorer.parameters(), lr=0.02, momentum=0.9)
    loss_fn = nn.CrossEntropyLoss()
    model = torch.compile(scorer)

    running = torch.zeros(())
    for step in range(STEPS):
        ai = torch.randint(0, ARTEFACTS, (BATCH,))
        si = torch.randint(0, SITES, (BATCH,))
        logits = model(artefacts[ai], sites[si])
        loss = loss_fn(logits, truth[ai, si])
        opt.zero_grad(set_to_none=True)
        loss.backward()
        opt.step()
        running += loss.detach()
        if step % 500 == 499:
            print(f"step {step + 1}: mean loss {running.item() / 500:.4f}")
            running.zero_()


if __name__ == "__main__":
    main()
