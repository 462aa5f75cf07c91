import torch
import torch.nn.functional as F


class Fold:
    def __init__(self, trunk, settings):
        self.trunk, self.settings = trunk, settings
        self.optimizer = torch.optim.AdamW(trunk.parameters(), lr=settings["rate"])
        places = torch.arange(settings["residues"])
        self.apart = (places[:, None] - places[None]).abs().clamp(max=63)

    def example(self):
        residues = torch.randint(21, (self.settings["residues"],))
        contact = ((residues[:, None] + residues[None]) % 5 == 0) & (self.apart > 3)
        return residues, contact.float()

    def train(self):
        shown = []
        for step in range(self.settings["steps"]):
            residues, contact = self.example()
            loss = F.binary_cross_entropy_with_logits(self.trunk(residues, self.apart), contact)
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            self.optimizer.step()
            shown.append(loss.detach())
            if len(shown) == self.settings["print_every"]:
                print(f"{step + 1:5d}  {torch.stack(shown).mean().item():.4f}")
                shown.clear()
