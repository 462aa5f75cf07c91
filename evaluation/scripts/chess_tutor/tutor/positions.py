import random

import torch

PIECES = "PNBRQKpnbrqk"
STEPS = {"n": [(1, 2), (2, 1), (-1, 2), (-2, 1), (1, -2), (2, -1), (-1, -2), (-2, -1)],
         "b": [(1, 1), (1, -1), (-1, 1), (-1, -1)],
         "r": [(1, 0), (-1, 0), (0, 1), (0, -1)]}


def scatter(rng):
    squares = rng.sample(range(64), 14)
    return {square: rng.choice(PIECES) for square in squares}


def mobility(board):
    total = [0, 0]
    for square, piece in board.items():
        kind = piece.lower()
        for dx, dy in STEPS.get(kind, STEPS["b"] + STEPS["r"]):
            x, y = square % 8, square // 8
            for _ in range(7 if kind in "brq" else 1):
                x, y = x + dx, y + dy
                if not (0 <= x < 8 and 0 <= y < 8):
                    break
                total[piece.islower()] += 1
                if y * 8 + x in board:
                    break
    return total


def planes(board):
    image = torch.zeros(14, 64)
    for square, piece in board.items():
        image[PIECES.index(piece), square] = 1.0
    white, black = mobility(board)
    image[12], image[13] = white / 50, black / 50
    return image.flatten(), float(white > black)


def lessons(count):
    rng = random.Random(64)
    for _ in range(count):
        made = [planes(scatter(rng)) for _ in range(rng.choice((64, 72, 80, 88, 96)))]
        yield torch.stack([m[0] for m in made]), torch.tensor([m[1] for m in made])
