"""A speed test of two compiled callables, which pytest runs one after the other."""
import pytest
import torch
import torch.nn as nn
from steady import Steady


@pytest.fixture
def device(request):
    return request.config.getoption("--device") or ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.fixture
def steps(request, device):
    return request.config.getoption("--steps") or (3000 if device == "cuda" else 1000)


def rotate(points, angles):
    cos, sin = angles.cos(), angles.sin()
    x, y = points.unbind(-1)
    turned = torch.stack([x * cos - y * sin, x * sin + y * cos], dim=-1)
    return turned / (1 + turned.square().sum(-1, keepdim=True)).sqrt()


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        gate, value, keep = self.project(x).chunk(3, dim=-1)
        return self.out(torch.sigmoid(gate) * value + torch.tanh(keep) * x)


def timed(name, fn, arguments, steps, device):
    steady = Steady(steps, device, name)
    with torch.inference_mode():
        for _ in range(steps):
            result = fn(*arguments)
            steady.step()
    steady.show()
    return result


def test_rotate(device, steps):
    size = 4_000_000 if device == "cuda" else 60_000
    arguments = torch.randn(size, 2, device=device), torch.randn(size, device=device)
    turned = timed("rotate", torch.compile(rotate), arguments, steps, device)
    assert torch.allclose(turned, rotate(*arguments), atol=1e-5)


def test_mixer(device, steps):
    width, rows = (1024, 8192) if device == "cuda" else (256, 256)
    mixer, x = Mixer(width).to(device).eval(), torch.randn(rows, width, device=device)
    mixed = timed("mixer", torch.compile(mixer), (x,), steps, device)
    with torch.inference_mode():
        assert torch.allclose(mixed, mixer(x), atol=1e-2)
