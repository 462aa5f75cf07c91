"""Changes of slices, operators, transforms and switches: each pattern, and what is nearly one."""

from textwrap import dedent

import pytest
from test_trials_edits import written

STACKED = """
def bank(x, state):
    out = torch.zeros_like(x)
    for t in range(48):
        state = 0.9 * state + x[:, t]
        out[:, t] = state
    return out, state
"""
SIZED = """
def bank(x, n):
    out = torch.empty((n, 4), dtype=x.dtype, device=x.device)
    for t in range(n):
        out[t] = x * t
    return out
"""
ROWS = """
def legendre(x, degree):
    basis = torch.ones(degree, x.shape[0])
    basis[1] = x
    for n in range(2, degree):
        basis[n] = (2 * x * basis[n - 1] - basis[n - 2]) / n
    return basis
"""
OPERATOR = """
@torch.library.custom_op("cells::leak", mutates_args=())
def leak(v: torch.Tensor) -> torch.Tensor:
    return torch.exp(v).clamp(max=10.0)

@leak.register_fake
def _(v):
    return torch.empty_like(v)

@torch.compile
def advance(v):
    return leak(v) + 1
"""
GRADIENTS = """
from torch.func import grad, jvp, vmap

@torch.compile(dynamic=False)
def payoff(x):
    return x.sin().sum()

delta = vmap(grad(payoff), in_dims=1)
"""
AT_ONCE = """
from torch.func import jvp
wave = torch.compile(plain)

def change(x, by):
    return jvp(wave, (x,), (by,))[1]
"""
CLOCK = """
import contextlib

@contextlib.contextmanager
def stage(name):
    begin = time.perf_counter()
    try:
        yield
    finally:
        ledger[name] = ledger.get(name, 0.0) + time.perf_counter() - begin

def forward(x):
    with stage("gain"):
        return x + 1
"""
COLUMN = """
def step(book, x, i):
    columns = book.t()
    old = columns[i]
    columns[i] = x + 0.1 * old
    return old
"""
INNER = """
def deposit(field, i, j, tag):
    inner = field[HALO:-HALO, :4]
    inner[i, j] = tag
"""
TOWER = """
def main(table, tower):
    target, features = table[:, 0], table[:, 1:]
    for lo in range(0, 640, 64):
        tower(features[lo : lo + 64]).sum()
"""
SAVED = """
import contextlib
def main(model, x):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = model(x)
"""
LENGTH = """
SIZE = BLOCK + TAIL - 1
def render(dry, wet):
    return torch.fft.irfft(torch.fft.rfft(dry, n=SIZE) * wet, n=SIZE)[:, :BLOCK]
"""
STRIP = """
def advance(h, lo, x):
    h[lo : lo + 9] += 2 * x
    return h.amax()
"""
STEREO = """
@torch.compile
def widen(pcm):
    left = pcm[:, 0::2]
    right = pcm[:, 1::2]
    return left + right
"""
MODES = """
def modes(x):
    return torch.linalg.eigvalsh(x @ x)
"""
VARIABLE = """
import os
os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
model = build()
"""
CHECK = """
def forward(x):
    if not torch.isfinite(x).all():
        raise FloatingPointError("too large")
    return x
"""
LOST = {  # rule, what the line says, text, what goes → what comes
    "parts of a tensor like another": (
        "ind-partial-write",
        "out[:, t]",
        STACKED,
        ("torch.zeros_like(x)", "[]"),
        ("out[:, t] = state", "out.append(state)"),
        ("    return", "    out = torch.stack(out, 1).view_as(x)\n    return"),
    ),
    "parts of a tensor of sizes": (
        "ind-partial-write",
        "out[t]",
        SIZED,
        ("torch.empty((n, 4), dtype=x.dtype, device=x.device)", "[]"),
        ("out[t] = x * t", "out.append(x * t)"),
        ("    return", "    out = torch.stack(out)\n    return"),
    ),
    "rows that are read again": (
        "ind-partial-write",
        "basis[n] =",
        ROWS,
        ("torch.ones(degree, x.shape[0])", "list(torch.ones(degree, x.shape[0]).unbind(0))"),
        ("return basis", "return torch.stack(basis)"),
    ),
    "a column through a view": (
        "ind-partial-write",
        "columns[i] =",
        COLUMN,
        ("columns[i] =", "book[:, i] ="),
    ),
    "elements of a part": (
        "ind-partial-write",
        "inner[i, j] =",
        INNER,
        ("inner[i, j] =", "field[i + HALO, j] ="),
    ),
    "a slice of which parts are passed": (
        "ind-unaligned-product",
        "features[lo",
        TOWER,
        ("table[:, 1:]", "table[:, 1:].clone()"),
    ),
    "tensors saved on the host": (
        "mem-saved-on-host",
        "save_on_cpu",
        SAVED,
        ("torch.autograd.graph.save_on_cpu(pin_memory=True)", "contextlib.nullcontext()"),
    ),
    "a slow length": (
        "ind-fft-length",
        "irfft",
        LENGTH,
        (
            "BLOCK + TAIL - 1",
            "next(n for n in range(BLOCK + TAIL - 1, 2 * (BLOCK + TAIL - 1)) if 30**30 % n == 0)",
        ),
    ),
    "a strip": ("ind-partial-write", "+=", STRIP, ("+= 2 * x", "= h[lo : lo + 9] + (2 * x)")),
    "an operator of torch's own": (
        "ind-extern-dominated",
        "leak(v) + 1",
        OPERATOR,
        ('@torch.library.custom_op("cells::leak", mutates_args=())\n', ""),
        ("@leak.register_fake\ndef _(v):\n    return torch.empty_like(v)\n", ""),
    ),
    "eigenvalues": (
        "ind-extern-dominated",
        "eigvalsh",
        MODES,
        ("def", "_eager_eigvalsh = torch.compiler.disable(torch.linalg.eigvalsh)\n\n\ndef"),
        ("return torch.linalg.eigvalsh", "return _eager_eigvalsh"),
    ),
    "a transform that is applied": (
        "gb-frame-skipped",
        "jvp(wave",
        AT_ONCE,
        (
            "def change",
            "@torch.compile\ndef _compiled_jvp(*given, **named):\n"
            "    return jvp(wave, *given, **named)\n\n\ndef change",
        ),
        ("return jvp(wave, (x,), (by,))[1]", "return _compiled_jvp((x,), (by,))[1]"),
    ),
    "a clock": (
        "gb-frame-skipped",
        "with stage",
        CLOCK,
        (
            "    begin =",
            "    if torch.compiler.is_compiling():\n        yield\n        return\n    begin =",
        ),
    ),
    "every second element": (
        "ind-scalar-loop",
        "left + right",  # what is slow is not where it is read
        STEREO,
        (
            "@torch.compile\n",
            "@torch.compiler.disable\ndef _laid_out(x):\n    return x.contiguous()\n\n\n"
            "@torch.compile\n",
        ),
        ("= pcm[:, 0::2]", "= _laid_out(pcm[:, 0::2])"),
        ("= pcm[:, 1::2]", "= _laid_out(pcm[:, 1::2])"),
    ),
    "a check": (
        "gb-data-dependent",
        "isfinite",
        CHECK,
        (
            'if not torch.isfinite(x).all():\n        raise FloatingPointError("too large")',
            'torch._assert_async(torch.isfinite(x).all(), "too large")',
        ),
    ),
    "a variable": (
        "ap-debug-switch",
        "LAUNCH_BLOCKING",
        VARIABLE,
        ('os.environ["CUDA_LAUNCH_BLOCKING"] = "1"\n', ""),
    ),
}


@pytest.mark.parametrize("case", LOST)
def test_a_pattern_is_changed_and_nothing_else(case):
    rule, line, text, *changes = LOST[case]
    expected = dedent(text)
    for old, new in changes:
        assert old in expected
        expected = expected.replace(old, new, 1)
    assert expected in written(rule, text, line)


NEARLY = {  # rule, what the line says, text, what makes it another thing
    "a loop that may leave parts": ("ind-partial-write", "out[t]", SIZED, "range(n)", "range(9)"),
    "a loop that ends early": (
        *("ind-partial-write", "out[t]", SIZED),
        *("        out[t]", "        if t > 3:\n            break\n        out[t]"),
    ),
    "rows that are used before they are complete": (
        *("ind-partial-write", "basis[n] =", ROWS, "basis[n - 2]", "basis.sum(0)"),
    ),
    "rows by a tensor's value": (
        *("ind-partial-write", "basis[n] =", ROWS, "basis[n - 2]", "basis[order]"),
    ),
    "an index that is no plain value": (
        "ind-partial-write",
        "inner[",
        INNER,
        "[i, j]",
        "[i | 1, j]",
    ),
    "a part whose first elements are left out from the end": (
        *("ind-partial-write", "inner[", INNER, "HALO:-HALO", "-HALO:"),
    ),
    "an index of other dimensions": ("ind-partial-write", "inner[", INNER, "[i, j] =", "[i] ="),
    "a length that is made twice": (
        *("ind-fft-length", "irfft", LENGTH, "def", "if FAST:\n    SIZE = 4096\ndef"),
    ),
    "rows of a tensor that is given": (
        *("ind-partial-write", "basis[n] =", ROWS, "torch.ones(degree, x.shape[0])", "x"),
    ),
    "a part that is read again": (
        *("ind-partial-write", "out[:, t] =", STACKED),
        *("+ x[:, t]", "+ x[:, t] + out[:, t - 1]"),
    ),
    "a part that is changed after it": (
        *("ind-partial-write", "out[:, t]", STACKED),
        *("state = 0.9 * state + x[:, t]", "state.mul_(0.9)"),
    ),
    "a tensor of another dtype": (
        *("ind-partial-write", "out[:, t]", STACKED, "(x)", "(x, dtype=torch.float16)"),
    ),
    "several columns": ("ind-partial-write", "columns[i", COLUMN, "columns[i] =", "columns[i:] ="),
    "an index that is worked out": ("ind-partial-write", "+=", STRIP, "lo :", "next(lo) :"),
    "an operator with a gradient": (
        *("ind-extern-dominated", "leak(v) + 1", OPERATOR),
        *("@torch.compile", "leak.register_autograd(backward)\n\n@torch.compile"),
    ),
    "an operator that changes what it gets": (
        *("ind-extern-dominated", "leak(v) + 1", OPERATOR, "mutates_args=()", "mutates_args='v'"),
    ),
    "an operator of another library": (
        *("ind-extern-dominated", "leak(v) + 1", OPERATOR, "torch.exp(v)", "native.exp(v)"),
    ),
    "an operator that is called by its name": (
        *("ind-extern-dominated", "leak(v) + 1", OPERATOR),
        *("@torch.compile", "other = torch.ops.cells.leak\n\n@torch.compile"),
    ),
    "a solution": ("ind-extern-dominated", "eig", MODES, "eigvalsh(x @ x)", "solve(x, x)  # eig"),
    "a transform of plain code": (
        *("gb-frame-skipped", "delta =", GRADIENTS, "@torch.compile(dynamic=False)\n", ""),
    ),
    "a function that is handed in": (
        *("gb-frame-skipped", "jvp(wave", AT_ONCE, "change(x, by)", "change(x, by, wave)"),
    ),
    "a context that does more": (
        *("gb-frame-skipped", "with stage", CLOCK, "        yield", "        push(name); yield"),
    ),
    "a context that catches": (
        *("gb-frame-skipped", "with stage", CLOCK),
        *("    finally:", "    except ValueError:\n        pass\n    finally:"),
    ),
    "an error that is caught": (
        *(
            "gb-data-dependent",
            "isfinite",
            CHECK,
            "def",
            "try:\n    y()\nexcept OSError:\n    y()\ndef",
        ),
    ),
    "a check that does more": (
        *("gb-data-dependent", "isfinite", CHECK, "raise", "log(x)\n        raise"),
    ),
    "a check of Python's": (
        *("gb-data-dependent", "isfinite", CHECK, "torch.isfinite(x).all()", "all(x)  # isfinite"),
    ),
    "neighbours": (
        *("ind-scalar-loop", "0::2", STEREO.replace("1::2", "9:18"), "0::2"),
        "0:9]  # 0::2\n    other = pcm[0",
    ),
    "a variable of something else": (
        *("ap-debug-switch", "os.environ[", VARIABLE, "CUDA_LAUNCH_BLOCKING", "OMP_NUM_THREADS"),
    ),
}


@pytest.mark.parametrize("case", NEARLY)
def test_what_is_nearly_a_pattern_is_left_alone(case):
    rule, line, text, old, new = NEARLY[case]
    assert old in text
    assert written(rule, text.replace(old, new, 1), line) == []
