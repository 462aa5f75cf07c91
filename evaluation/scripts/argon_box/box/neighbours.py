import torch


def near_pairs(places, side, reach, room):
    """Pairs of atoms nearer than `reach`, padded to `room`."""
    points = places.tolist()
    first, second = [], []
    for i, (x, y, z) in enumerate(points):
        for j in range(i):
            u, v, w = points[j]
            dx, dy, dz = abs(x - u), abs(y - v), abs(z - w)
            dx, dy, dz = min(dx, side - dx), min(dy, side - dy), min(dz, side - dz)
            if dx * dx + dy * dy + dz * dz < reach * reach:
                first.append(i)
                second.append(j)
    first, second = first[:room], second[:room]
    mask = torch.zeros(room)
    mask[: len(first)] = 1.0
    spare = [0] * (room - len(first))
    other = [1] * (room - len(first))
    return torch.tensor([first + spare, second + other]), mask
