import torch


def inverse_root(matrix, damping, order=4):
    values, vectors = torch.linalg.eigh(matrix)
    return (vectors * (values.clamp(min=0) + damping).pow(-1 / order)) @ vectors.T
