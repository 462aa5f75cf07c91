"""A model that reads a tensor's value in the middle of forward, which causes a graph break."""

import torch


class Router(torch.nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.gate = torch.nn.Linear(width, width)
        self.out = torch.nn.Linear(width, width)

    def forward(self, x):
        h = torch.tanh(self.gate(x)) * x
        strength = h.abs().mean().item()
        h = h * (1.0 + strength)
        return torch.relu(self.out(h)) + x


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Router().to(device).eval()
    compiled = torch.compile(model)
    x = torch.randn(64, 256, device=device)
    with torch.no_grad():
        for _ in range(20000):
            y = compiled(x)
    print(f"mean output: {y.mean().item():.4f}")


if __name__ == "__main__":
    main()
