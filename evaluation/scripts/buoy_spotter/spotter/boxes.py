def area(box):
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(a, b):
    shared = area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
    return shared / (area(a) + area(b) - shared + 1e-9)


def suppress(boxes, scores, limit):
    """The best boxes that do not lie on better ones."""
    order = scores.argsort(descending=True)
    kept = []
    for box in boxes[order].tolist():
        if all(overlap(box, other) < limit for other in kept):
            kept.append(box)
    return kept
