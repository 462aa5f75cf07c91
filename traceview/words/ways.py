"""Other ways to write an operator, as a person reads them (`ind-other-form`, `traceview try`)."""

from __future__ import annotations

from typing import NamedTuple

SOLVE, EXPANDED = "a solve", "an expanded index"


class Way(NamedTuple):
    """``name``: as the title says it; what to do; what to paste.

    ``price``: why it is not right for all inputs, but for rounding; empty where it is.
    """

    name: str
    what_to_do: str
    code: str
    price: str = ""


#: As table ``form_trials`` names it → the way.
WAYS = {
    "one dimension at a time": Way(
        "two poolings, along one dimension each,",
        "Pool along one dimension, then along the next: the result is the same.",
        "y = F.max_pool2d(x, (1, k), 1, (0, k // 2))  # or F.avg_pool2d\n"
        "y = F.max_pool2d(y, (k, 1), 1, (k // 2, 0))",
    ),
    "differences of running sums": Way(
        "differences of running sums",
        "Take each window's sum as the difference of two running sums, whatever its size. "
        "Rounding grows with the dimension's length.",
        "sums = F.pad(x, (k // 2 + 1, k // 2)).cumsum(-1)\n"
        "y = (sums[..., k:] - sums[..., :-k]) / k  # then the same along the next dimension",
    ),
    "a fixed window": Way(
        "a pooling with a fixed window",
        "The sizes divide evenly: give the window instead of the size of the result.",
        "y = F.avg_pool2d(x, (height // rows, width // columns))  # or F.max_pool2d",
    ),
    "sorted=False": Way(
        "topk(sorted=False)",
        "Where the order of the largest values does not matter, don't ask for it.",
        "values, indices = x.topk(k, sorted=False)",
        price="order: the values come in any",
    ),
    "max or min": Way(
        "max or min", "The largest one needs no topk.", "value, index = x.max(-1, keepdim=True)"
    ),
    "a sort": Way(
        "a sort", "Sort, and take what is wanted.", "values, indices = x.sort(-1)"
    ),
    "32-bit numbers": Way(
        "32-bit integers",
        "Where the values fit into 32 bits, sort them so.",
        "values, indices = x.int().sort(-1)",
        price="only for values that fit into 32 bits",
    ),
    EXPANDED: Way(
        "a view of the index",
        "The index is the same in each column. Make it with expand, not with repeat: ATen then "
        "takes whole rows.",
        "rows = index.unsqueeze(1).expand(-1, columns)  # not .repeat(1, columns)",
    ),
    "a search in running sums": Way(
        "a search in running sums",
        "Draw a number below the sum and look up where the running sum passes it. The draws have "
        "the same distribution, not the same values.",
        "sums = p.cumsum(-1)\n"
        "u = torch.rand(p.shape[0], 1, device=p.device) * sums[:, -1:]\n"
        "drawn = torch.searchsorted(sums, u, right=True)",
    ),
    "bincount": Way(
        "bincount",
        "Compute each value's bin and count these. Values at a bin's very edge may fall into the "
        "next one.",
        "at = ((x - low) * (bins / (high - low))).long().clamp(0, bins - 1)\n"
        "counts = torch.bincount(at.flatten(), minlength=bins)  # of values within",
    ),
    "the logarithm of a running sum": Way(
        "the logarithm of a running sum",
        "Subtract the maximum, sum the exponentials and take the logarithm. Elements more than "
        "about 85 below the maximum (float32) become -inf.",
        "m = x.amax(-1, keepdim=True)\ny = (x - m).exp().cumsum(-1).log() + m",
        price="range: what is 85 below the maximum becomes -inf",
    ),
    "a product with a triangle of ones": Way(
        "a product with a triangle of ones",
        "A running sum of few elements is a matrix product. Make the triangle once.",
        "ones = torch.ones(n, n).triu()  # once\ny = x @ ones",
    ),
    "full_matrices=False": Way(
        "svd(full_matrices=False)",
        "Without it, U or V is completed to a square matrix. The columns that go with singular "
        "values are the same.",
        "u, s, vh = torch.linalg.svd(x, full_matrices=False)",
    ),
    "eigenvalues of the product with itself": Way(
        "the eigenvalues of x.mT @ x",
        "Singular values are their square roots. It halves the number of digits: only for "
        "matrices that are far from singular, or in float64.",
        "squares, v = torch.linalg.eigh(x.mT @ x)\ns = squares.clamp(min=0).sqrt()",
        price="precision: half of the digits",
    ),
    "normal equations": Way(
        "the normal equations",
        "Solve a.mT @ a. It halves the number of digits: only for matrices that are far from "
        "singular, or in float64.",
        "x = torch.linalg.solve(a.mT @ a, a.mT @ b)",
        price="precision: half of the digits",
    ),
    SOLVE: Way(
        "torch.linalg.solve",
        "The inverse is only multiplied with few columns: solve for these, which is more precise "
        "as well.",
        "y = torch.linalg.solve(a, b)  # not torch.linalg.inv(a) @ b",
    ),
    "on the CPU": Way(
        "the CPU, with copies there and back,",
        "The GPU does these one after the other. Do them on the CPU, or on all matrices of some "
        "steps together.",
        "found = torch.linalg.eigh(x.cpu())  # and .to(x.device)",
    ),
    "a Cholesky factor": Way(
        "the Cholesky factor of x.mT @ x",
        "It gives the same columns up to their sign, in a few batched calls. It halves the number "
        "of digits: only for columns that are far from dependent; twice in a row is safer.",
        "r = torch.linalg.cholesky_ex(x.mT @ x, upper=True)[0]\n"
        "q = torch.linalg.solve_triangular(r, x, upper=True, left=False)",
        price="precision: half of the digits",
    ),
    "a fixed polynomial": Way(
        "a polynomial with scaling and squaring",
        "ATen sorts the matrices by their norms on the host and multiplies them in the library. "
        "With a bound of the norms, one polynomial does for all (here for norms up to 8). For "
        "rotations (3 by 3, skew) there is Rodrigues' formula.",
        "y = one + x / 16  # … Horner's scheme to the eighth power, products as sums\n"
        "for _ in range(4):\n"
        "    y = (y.unsqueeze(-1) * y.unsqueeze(-3)).sum(-2)",
        price="only for matrices with norms up to 8",
    ),
    "the exponential of a sum of logarithms": Way(
        "the exponential of a sum of logarithms",
        "For positive factors. The gradient of prod is two running products over all elements, "
        "which are written to memory.",
        "y = x.log().sum(dim).exp()  # not x.prod(dim)",
        price="only for positive factors",
    ),
    "einsum": Way(
        "torch.einsum",
        "ATen's bilinear layer loops over one dimension, forward and backward. Multiply by the "
        "whole weight, then by the other input, and sum: compiled code fuses the last two.",
        'y = torch.einsum("bi,oij,bj->bo", left, layer.weight, right) + layer.bias',
    ),
    "a product and an addition": Way(
        "a product and an addition",
        "The bias is the same for many rows, and the library gets a full copy of it. Multiply, "
        "then add: compiled code fuses the addition with what follows.",
        "y = torch.bmm(a, b) + bias  # not torch.baddbmm(bias, a, b)",
    ),
    "products of parts": Way(
        "products of parts, added up,",
        "Few results each add up many products: do these in parts side by side.",
        "parts = a.unflatten(1, (64, -1)).transpose(0, 1) @ b.unflatten(0, (64, -1))\n"
        "y = parts.sum(0)",
    ),
    "multiplied and summed": Way(
        "a multiplication and a sum",
        "Of a vector or of tiny matrices, write the product of elements and its sum: compiled "
        "code does both in one kernel, with what is around it. In eager it is slower.",
        "y = (a.unsqueeze(-1) * b.unsqueeze(-3)).sum(-2)  # not a @ b",
    ),
    "an embedding and a reduction": Way(
        "an embedding and a reduction",
        "Bags have the same size: look the rows up and reduce them, which compiled code does in "
        "one kernel.",
        "y = F.embedding(bags, table).amax(1)  # or sum, mean",
    ),
    "two products": Way(
        "two matrix products",
        "What each result takes of each element depends on the sizes alone: make the two matrices "
        "once, by resizing an identity matrix.",
        'rows = F.interpolate(torch.eye(h)[None, None], (new_h, h), mode="bilinear", '
        "antialias=True)[0, 0]\ny = rows @ x @ columns.T",
    ),
    "Fourier transforms": Way(
        "Fourier transforms",
        "A long kernel is a product of spectra. Results differ by rounding.",
        "n = x.shape[-1] + 2 * pad  # or the next length with small factors\n"
        "spectrum = torch.fft.rfft(F.pad(x, (pad, pad)), n) * torch.fft.rfft(weight, n).conj()\n"
        "y = torch.fft.irfft(spectrum, n)[..., : n - k + 1]",
    ),
    "a convolution of fewer dimensions": Way(
        "a convolution of two dimensions",
        "The kernel has one element in some dimension: fold that into the batch, or flatten it.",
        "y = F.conv2d(x.flatten(3), weight[..., 0], bias, padding=(p, 0)).unflatten(3, (h, w))",
    ),
    "one matrix product": Way(
        "one matrix product",
        "Patches do not overlap, so each is a row of a matrix.",
        "patches = x.unflatten(3, (-1, k)).unflatten(2, (-1, k)).permute(0, 2, 4, 1, 3, 5)\n"
        "y = patches.flatten(3) @ weight.flatten(1).T + bias  # channels last",
    ),
    "two passes": Way(
        "the mean of squared differences",
        "Generated code updates mean and variance together, element by element (Welford). With "
        "the mean computed before, it is a plain sum.",
        "mean = x.mean(dim, keepdim=True)\n"
        "var = (x - mean).square().sum(dim) / (n - 1)  # std: its square root",
    ),
    "shifted products": Way(
        "a sum of shifted products",
        "With few elements for each channel, write the sum: compiled code does it in one kernel, "
        "with what is around it.",
        "x = F.pad(x, (k - 1, 0))\n"
        "y = sum(x[..., i : i + n] * weight[:, 0, i, None] for i in range(k))",
    ),
    "one group with zeros": Way(
        "one group, with zeros for the others' channels,",
        "The library has fast code for one group only. Place the groups' weights on the diagonal "
        "of one large one.",
        "whole = torch.block_diag(*weight.flatten(1).chunk(groups))  # kernels of one element",
    ),
}  # fmt: skip
