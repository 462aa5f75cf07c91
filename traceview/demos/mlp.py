"""A plain MLP classifier in training."""

import torch


class MLP(torch.nn.Module):
    def __init__(self, width=512, classes=10):
        super().__init__()
        self.net = torch.nn.Sequential(
            torch.nn.Linear(128, width),
            torch.nn.GELU(),
            torch.nn.Linear(width, width),
            torch.nn.GELU(),
            torch.nn.Linear(width, classes),
        )

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = MLP().to(device)
    compiled = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    features = torch.randn(4096, 128, device=device)
    labels = (features.sum(dim=1) > 0).long()
    for step in range(2000):
        rows = torch.randint(0, len(features), (256,), device=device)
        loss = torch.nn.functional.cross_entropy(compiled(features[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
