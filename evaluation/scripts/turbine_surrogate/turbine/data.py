import torch


def sensor_rows(count):
    rows = torch.randn(count, 24)
    emission = torch.sin(rows[:, 0]) + 0.3 * rows[:, 1] * rows[:, 2]
    emission = torch.where(rows[:, 5] > 1.5, torch.nan, emission)
    return rows, emission
