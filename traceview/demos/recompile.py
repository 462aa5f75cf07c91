"""A module that counts its calls in a Python int, and therefore recompiles."""

import torch


class Scheduled(torch.nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.proj = torch.nn.Linear(width, width)
        self.step = 0

    def forward(self, x):
        self.step += 1
        return torch.relu(self.proj(x)) * (0.99**self.step)


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = Scheduled().to(device).eval()
    compiled = torch.compile(model)
    x = torch.randn(64, 256, device=device)
    with torch.no_grad():
        for _ in range(20000):
            y = compiled(x)
    print(f"mean output: {y.mean().item():.6f}")


if __name__ == "__main__":
    main()
