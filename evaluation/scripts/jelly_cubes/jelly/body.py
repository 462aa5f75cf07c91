"""A soft body of tetrahedra."""
from dataclasses import dataclass
from itertools import product

import torch

# five tetrahedra fill one cube; corners are numbered by x + 2 y + 4 z
CUBE = ((0, 1, 2, 4), (3, 1, 2, 7), (5, 1, 4, 7), (6, 2, 4, 7), (1, 2, 4, 7))


@dataclass
class Body:
    places: torch.Tensor
    speeds: torch.Tensor
    corners: torch.Tensor
    rest: torch.Tensor
    volume: torch.Tensor
    mass: torch.Tensor
    stiffness: float = 900.0
    bulk: float = 2500.0


def edges(places, corners):
    p = places[corners]
    return (p[:, 1:] - p[:, :1]).transpose(1, 2)


def brick(nx, ny, nz, size=0.1):
    def index(x, y, z):
        return x + (nx + 1) * (y + (ny + 1) * z)

    places = torch.tensor([[x, y, z] for z in range(nz + 1) for y in range(ny + 1) for x in range(nx + 1)]) * size
    corners = []
    for x, y, z in product(range(nx), range(ny), range(nz)):
        cube = [index(x + (c & 1), y + (c >> 1 & 1), z + (c >> 2)) for c in range(8)]
        corners += [[cube[c] for c in tetra] for tetra in CUBE]
    corners = torch.tensor(corners)
    shape = edges(places, corners)
    volume = torch.linalg.det(shape).abs() / 6
    mass = torch.zeros(len(places)).index_add_(0, corners.flatten(), (volume * 250).repeat_interleave(4))
    return Body(places, torch.zeros_like(places), corners, torch.linalg.inv(shape), volume, mass.unsqueeze(1))
