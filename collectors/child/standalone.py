"""A piece of a graph by itself: its values, eager and compiled, and a script that shows the fault.

The script needs torch alone. It is handed over only if it shows the fault in three new processes;
its inputs are random numbers of the same kind, or those of the call where these have to be.
"""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

from .pieces import Backend
from .recorder import write_whole
from .taken import cloned

TIMES = 3
#: What the script prints where it shows the fault.
DIFFERS = "Compiled results differ from eager's."
_NOT_TORCHS = re.compile(r"torch\.ops\.(?!aten\.|prims\.|higher_order\.|_c10d)(\w+\.\w+)")
_IMPORTS = {"device": "from torch import device", "inf": "from math import inf"}
_IMPORTS |= {"nan": "from math import nan", "torch": ""}
_FORGETS = re.compile(r";  ([\w = ]+ = None|setitem\w* = \w+)(?=\s*(;.*|#.*)?$)", re.M)
_LEAST_S = 12.0


@dataclass(frozen=True)
class Worst:
    """The element of a result that is furthest off; None: NaN or infinite, or no float64 run."""

    name: str
    element: list[int]
    eager: float | None
    compiled: float | None
    exact: float | None


class Standalone:
    """``module`` with the inputs ``given``, compiled by ``inner``: ``rung`` with ``how``."""

    def __init__(
        self,
        torch: Any,
        module: Any,
        given: Sequence[Any],
        inner: Backend,
        rung: Any,
        how: Mapping[str, Any],
        *,
        grad: bool,
        fallback_random: bool,
    ) -> None:
        self._torch, self._module, self._given = torch, module, list(given)
        self._inner, self._rung, self._how = inner, rung, how
        self._grad, self._fallback_random = grad, fallback_random
        self._rename()

    def worst(self) -> Worst | None:
        """Of the result that is furthest off; None where none is."""
        torch = self._torch
        eager = self._run(self._module)
        try:
            exact = self._run(self._module, double=True)
        except Exception:  # noqa: BLE001 - not every operator knows float64
            exact = {}
        torch._dynamo.reset()
        compiled = self._run(torch.compile(self._module, backend=self._inner))
        found: tuple[float, Worst | None] = (0.0, None)
        for name, own in eager.items():
            other, best = compiled.get(name), exact.get(name, own)
            if other is None or other.shape != own.shape or not own.numel() or own.is_complex():
                continue
            a, b, r = (each.detach().double() for each in (own, other, best))
            off = torch.nan_to_num((b - r).abs(), nan=torch.inf, posinf=torch.inf)
            off = torch.where((b == r) | (b.isnan() & r.isnan()), 0.0, off)
            size = float(r[r.isfinite()].square().mean().sqrt()) or 1.0
            error = float(off.max()) / size
            if error > found[0]:
                at = int(off.argmax())
                element = [int(i) for i in torch.unravel_index(torch.tensor(at), off.shape)]
                numbers = [float(each.flatten()[at]) for each in (a, b, r)]
                values = [number if math.isfinite(number) else None for number in numbers]
                last = values[2] if name in exact else None
                found = error, Worst(name, element, values[0], values[1], last)
        return found[1]

    def _run(self, call: Callable[..., Any], *, double: bool = False) -> dict[str, Any]:
        """Outputs, gradients and written inputs by name."""
        torch = self._torch
        given = cloned(self._given, torch)
        if double:
            given = [self._doubled(each) for each in given]
        names = [node.name for node in self._module.graph.nodes if node.op == "placeholder"]
        (output,) = self._module.graph.find_nodes(op="output")
        torch.manual_seed(0)
        with torch.set_grad_enabled(self._grad):
            before = cloned(given, torch)
            leaves = [
                each.clone() if isinstance(each, torch.Tensor) and each.requires_grad else each
                for each in given
            ]  # which may be written into
            made = call(*leaves)
            found = {
                node.name: value
                for node, value in zip(output.args[0], made, strict=True)
                if isinstance(value, torch.Tensor)
            }
            wanted = [(n, g) for n, g in zip(names, given, strict=True) if self._has_grad(g)]
            seeded = torch.Generator().manual_seed(1)
            sums = [value for value in found.values() if value.requires_grad]
            if sums and wanted:
                weights = [torch.randn(s.shape, generator=seeded).to(s) for s in sums]
                tensors = [tensor for _, tensor in wanted]
                grads = torch.autograd.grad(sums, tensors, weights, allow_unused=True)
                pairs = zip(wanted, grads, strict=True)
                found |= {f"gradient of {n}": g for (n, _), g in pairs if g is not None}
        for name, now, then in zip(names, leaves, before, strict=True):
            if isinstance(now, torch.Tensor) and not torch.equal(now, then):
                found[f"{name} (written)"] = now.detach()
        return {name: value.detach().clone() for name, value in found.items()}

    def _doubled(self, value: Any) -> Any:
        if not isinstance(value, self._torch.Tensor) or not value.is_floating_point():
            return value
        return value.detach().double().requires_grad_(value.requires_grad)

    def _has_grad(self, value: Any) -> bool:
        return isinstance(value, self._torch.Tensor) and value.requires_grad

    def _rename(self) -> None:
        """Shorter names for what Dynamo names by where it was found."""
        graph = self._module.graph
        for node in graph.nodes:
            if node.op == "placeholder":
                node._rename(short(node.name))
                node.target = node.name
        self._module.recompile()

    # -- the script --------------------------------------------------------------------------------

    def script(
        self, folder: Path, name: str, title: str, left: Callable[[], float]
    ) -> tuple[str | None, int | None, str | None]:
        """(name of the file, in how many of ``TIMES`` it showed the fault, why there is none)."""
        try:
            code = self._code()
        except ValueError as why:
            return None, None, str(why)
        folder.mkdir(parents=True, exist_ok=True)
        path, saved = folder / f"{name}.py", folder / f"{name}.pt"
        reason = None
        for inputs in (self._random_inputs, lambda: self._saved_inputs(saved)):
            if left() < _LEAST_S:
                reason = reason or "the budget was used up before one could be checked"
                break
            write_whole(path, self._text(title, code, inputs()).encode())
            shown, reason = self._checked(path, left())
            if shown == TIMES:
                return path.name, shown, None
        for each in (path, saved):
            each.unlink(missing_ok=True)
        return None, None, reason

    def _checked(self, path: Path, left: float) -> tuple[int, str]:
        """In how many of the new processes the script shows the fault, and why not in all."""
        drop = ("TORCH", "TRACEVIEW", "_TRACEVIEW")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(drop)}
        until = time.monotonic() + left
        with tempfile.TemporaryDirectory(prefix="traceview-") as scratch:
            started = [
                subprocess.Popen(
                    [sys.executable, str(path)],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env={**kept, "TORCHINDUCTOR_CACHE_DIR": str(Path(scratch, str(number)))},
                )
                for number in range(TIMES)
            ]
            outputs = []
            for each in started:
                try:
                    outputs.append(each.communicate(timeout=max(0.1, until - time.monotonic())))
                except subprocess.TimeoutExpired:
                    each.kill()
                    each.communicate()
        shown = sum(DIFFERS in out for out, _ in outputs)
        if len(outputs) < TIMES:
            return shown, "the budget was used up while it was checked"
        failed = next((err for out, err in outputs if DIFFERS not in out and err.strip()), "")
        why = f"by itself, without what your script does, it shows in {shown} of {TIMES} processes"
        if failed and "Error" in failed:
            why += f" ({failed.strip().splitlines()[-1][:200]})"
        return shown, why

    def _code(self) -> str:
        """The graph as Python; ValueError where torch alone has not all of it."""
        known, parts = dict(_IMPORTS), list(self._classes(self._module, "Graph"))
        text = "\n\n\n".join(parts)
        foreign = _NOT_TORCHS.search(text)
        if foreign:
            raise ValueError(f"a script with torch alone hasn't got the operator {foreign[1]}")
        names = {*known, *self._module.graph.python_code("self").globals}
        used = {name for name in names if re.search(rf"(?<![\w.]){name}\b", text)}
        for name in used - set(known):
            raise ValueError(f"a script with torch alone hasn't got the function {name}")
        imports = [known[name] for name in sorted(used) if known[name]]
        return "\n".join(["import torch", *imports]) + "\n\n\n" + text

    def _classes(self, module: Any, name: str) -> Iterator[str]:
        """The class of a graph, after those of the graphs in it."""
        held = []
        for node in module.graph.find_nodes(op="get_attr"):
            value = getattr(module, node.target, None)
            if isinstance(value, self._torch.fx.GraphModule):
                yield from self._classes(value, f"{name}_{node.target}")
                held.append(f"{node.target} = {name}_{node.target}()")
            elif isinstance(value, self._torch.Tensor) and value.numel() <= 64:
                held.append(f"{node.target} = torch.tensor({value.tolist()}, dtype={value.dtype})")
            else:
                raise ValueError(f"a script with torch alone hasn't got the graph's {node.target}")
        for node in module.graph.find_nodes(op="call_module"):
            raise ValueError(f"a script with torch alone hasn't got the module {node.target}")
        code = _FORGETS.sub("", module.graph.python_code("self").src).strip()
        code = "\n".join(line.rstrip() for line in code.splitlines() if line.strip())
        body = "\n".join([*held, code])
        yield f"class {name}(torch.nn.Module):\n{indent(body, '    ')}"

    def _text(self, title: str, code: str, inputs: str) -> str:
        how = {"backend": self._rung}
        how |= {n: self._how[n] for n in ("mode", "options", "dynamic") if self._how.get(n)}
        arguments = ", ".join(f"{name}={value!r}" for name, value in how.items())
        settings = self._settings()
        names = [node.name for node in self._module.graph.nodes if node.op == "placeholder"]
        (output,) = self._module.graph.find_nodes(op="output")
        made = [text for begin, text in _HELPERS.items() if begin in inputs]
        made += [_HELPERS["laid_out("]] if made else []
        return _SCRIPT.format(
            helpers="".join(made),
            title=title,
            version=self._torch.__version__,
            code=code,
            inputs=indent(inputs, "    "),
            names=tuple(names),
            outputs=tuple(node.name for node in output.args[0]),
            settings=settings,
            arguments=arguments,
            grad=self._grad,
        )

    def _settings(self) -> str:
        """Settings of Inductor that are not its own defaults: what is wrong may need them."""
        config, begin = self._torch._inductor.config, "torch._inductor.config."
        entries = getattr(config, "_config", {})
        kept = {}
        for line in config.codegen_config().splitlines():
            name = line.removeprefix(begin).partition(" = ")[0]
            # What was set and put back is listed as well.
            default = getattr(entries.get(name), "default", self)
            if line.startswith(begin) and f"{begin}{name} = {default!r}" != line:
                kept[name] = line
        for ours in ("compile_threads", "fx_graph_cache", "fallback_random"):
            kept.pop(ours, None)
        if self._fallback_random:
            kept["fallback_random"] = f"{begin}fallback_random = True"
        return "".join(f"{line}\n" for line in kept.values())

    def _saved_inputs(self, saved: Path) -> str:
        self._torch.save(self._given, saved)
        return "return torch.load(__file__.removesuffix('.py') + '.pt')"

    def _random_inputs(self) -> str:
        values = ",\n".join(f"    {self._random(each)}" for each in self._given)
        return f"return [\n{values},\n]" if values else "return []"

    def _random(self, value: Any) -> str:
        """An expression for random numbers of this kind."""
        torch = self._torch
        if not isinstance(value, torch.Tensor):
            return repr(value if isinstance(value, (bool, float, str)) else int(value))
        shape, stride, dtype = tuple(value.shape), tuple(value.stride()), value.dtype
        plain = torch.empty(shape).stride() == stride
        more = "" if plain else f", stride={stride}"
        more += ", requires_grad=True" if value.requires_grad else ""
        more += "" if value.device.type == "cpu" else f", device={str(value.device)!r}"
        wide = value.detach().double() if not value.is_complex() else value.detach().real.double()
        wide = wide[wide.isfinite()]
        if not wide.numel():
            wide = torch.zeros(1)
        figures = wide.min(), wide.max(), wide.mean(), wide.std(correction=0)
        low, high, mean, std = map(float, figures)
        if not (value.is_floating_point() or value.is_complex()):
            return f"whole({shape}, {dtype}, {int(low)}, {int(high)}, {mean:.6g}{more})"
        return f"values({shape}, {dtype}, {low:.6g}, {high:.6g}, {mean:.6g}, {std:.6g}{more})"


def short(name: str) -> str:
    """``weight`` of ``l_self_modules_gate_parameters_weight_``, as a name that Python takes."""
    plain = re.sub(r"_(modules|parameters|buffers)_", "_", name.strip("_"))
    plain = re.sub(r"^l_(self_)?", "", re.sub(r"_+", "_", plain)).strip("_")
    return plain if plain.isidentifier() else f"p_{plain}"


_HELPERS = {
    "values(": """def values(shape, dtype, low, high, mean, std, requires_grad=False, **layout):
    if low >= 0:
        made = torch.rand(shape, dtype=torch.float64) * (high - low) + low
    else:
        made = (torch.randn(shape, dtype=torch.float64) * std + mean).clamp(low, high)
    return laid_out(made, dtype, **layout).requires_grad_(requires_grad)


""",
    "whole(": """def whole(shape, dtype, low, high, mean, **layout):
    made = torch.rand(shape) < mean if dtype is torch.bool else torch.randint(low, high + 1, shape)
    return laid_out(made, dtype, **layout)


""",
    "laid_out(": """def laid_out(made, dtype, stride=None, device="cpu"):
    stride = made.stride() if stride is None else stride
    return torch.empty_strided(made.shape, stride, dtype=dtype, device=device).copy_(made)


""",
}
_SCRIPT = '''"""{title}

Prints how far compiled results are from eager's; found with torch {version}.
"""

{code}


{helpers}def inputs():
    torch.manual_seed(0)
{inputs}


def doubled(value):
    if not isinstance(value, torch.Tensor) or not value.is_floating_point():
        return value
    return value.detach().double().requires_grad_(value.requires_grad)


def results(call, double=False):
    given = [doubled(value) if double else value for value in inputs()]
    # what needs gradients is cloned: it may be written into
    leaves = [value.clone() if getattr(value, "requires_grad", 0) else value for value in given]
    torch.manual_seed(1)
    found = dict(zip({outputs}, call(*leaves)))
    shared = [[memory(value) == memory(leaf) for leaf in leaves] for value in found.values()]
    found |= {{f"argument {{n}} after the call": value for n, value in enumerate(leaves)}}
    found |= {{"outputs in memory of arguments": torch.tensor(shared)}}
    found = {{n: value for n, value in found.items() if isinstance(value, torch.Tensor)}}
    wanted = [value for value in given if isinstance(value, torch.Tensor) and value.requires_grad]
    sums = [value for n, value in found.items() if value.requires_grad and "argument" not in n]
    if sums and wanted:
        torch.manual_seed(2)
        weights = [torch.randn(each.shape, dtype=torch.float64).to(each) for each in sums]
        grads = torch.autograd.grad(sums, wanted, weights, allow_unused=True)
        found |= {{f"gradient {{n}}": each for n, each in enumerate(grads) if each is not None}}
    return found


def rms(tensor):
    return tensor.detach().double().abs().nan_to_num(0, 0).square().mean().sqrt().item()


def memory(value):
    return value.untyped_storage().data_ptr() if isinstance(value, torch.Tensor) else id(value)


def layout(tensor):
    return tuple(tensor.shape), tensor.dtype, tensor.stride()


{settings}torch.set_grad_enabled({grad})
graph, wrong = Graph(), False
eager, compiled = results(graph), results(torch.compile(graph, {arguments}))
try:
    exact = results(graph, double=True)
except RuntimeError:
    exact = {{}}
for name, value in eager.items():
    other, best = compiled[name], exact.get(name, value)
    if layout(other) != layout(value):
        print(f"{{name}}: {{layout(other)}}, eager's {{layout(value)}}")
        wrong = True
    elif value.numel():
        size = rms(best) or 1.0
        own, error = (rms(each.double() - best.double()) / size for each in (value, other))
        odd = int((other.isnan() != value.isnan()).sum())
        least = 2e-2 if value.dtype in (torch.bfloat16, torch.float16) else 1e-4
        print(f"{{name}}: relative error {{error:.2g}}, eager's {{own:.2g}}")
        wrong = wrong or odd > 0 or error > max(least, 10 * own)
print("{differs}" if wrong else "Compiled results agree with eager's.")
'''.replace("{differs}", DIFFERS)
