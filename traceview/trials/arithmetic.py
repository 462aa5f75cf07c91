"""Changes of what numbers are computed with: complex ones in parts, fewer digits, other lengths.

And of operators that do the same work in another order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traceview.derive.syntax import covers
from traceview.torchtext.fx import ATTENTION
from traceview.trials.source import (
    SIMPLE,
    Changes,
    Function,
    Source,
    called,
    dotted,
)

#: Calls that keep the dtype of what numpy made.
_OF_NUMPY = ("torch.from_numpy", "torch.as_tensor", "torch.tensor")
#: Places for each sum, so that as many threads do not wait for one address.
_PLACES = 1024
#: Of a result that is the same they keep an index, where these keep a mask for the backward.
_BY_INDEX = {"amax": "max", "amin": "min"}
_SCANS = ("cumsum", "cumprod")
#: What only complex tensors have, or are made by.
_COMPLEX = frozenset(
    ["complex", "complex64", "complex128", "conj", "imag", "polar", "view_as_complex"]
)
_PARTS = '''def _in_parts(function):
    """Complex tensors are pairs of real ones in it, which Inductor has code for."""

    def split(x):
        if not (torch.is_tensor(x) and x.is_complex()):
            return x
        return ComplexTensor(*torch.view_as_real(x.resolve_conj()).unbind(-1))

    def joined(x):
        if not isinstance(x, ComplexTensor):
            return x
        return torch.view_as_complex(torch.stack([x.re, x.im], -1))

    @functools.wraps(function)
    def inner(*args, **kwargs):
        if not torch.compiler.is_compiling():
            return function(*args, **kwargs)
        args, kwargs = tree_map(split, (args, kwargs))
        return tree_map(joined, function(*args, **kwargs))

    return inner


def _imaginary(x):
    if torch.compiler.is_compiling():
        return ComplexTensor(torch.tensor(0.0), torch.tensor(x))
    return complex(0.0, x)


'''
_PARTS_FROM = """from torch._subclasses.complex_tensor import ComplexTensor
from torch.utils._pytree import tree_map
"""


def cast_where_made(source: Source, line: int) -> Changes:
    """``torch.from_numpy(table)`` → float32, where the statement at ``line`` reads what it makes.

    Made as a name of the module, or as an attribute or buffer of the class of the method; once.
    """
    statement, function = source.at(line, ast.stmt), source.function_at(line)
    if statement is None or function is None:
        return
    read = {source.of(each) for each in ast.walk(statement) if isinstance(each, ast.expr)}
    owner = source.class_of(function)
    made: dict[str, list[ast.expr]] = {}
    for node in [*source.tree.body, *(ast.walk(owner) if owner else ())]:
        match node:
            case ast.Assign(targets=[target], value=value) if dotted(target) in read:
                made.setdefault(dotted(target), []).append(value)
            case ast.Call(args=[ast.Constant(value=str(name)), value]):
                if dotted(node.func) == "self.register_buffer" and f"self.{name}" in read:
                    made.setdefault(f"self.{name}", []).append(value)
    for values in made.values():
        if len(values) == 1 and called(values[0]) in _OF_NUMPY:
            _, end = source.span(values[0])
            yield [(end, end, ".float()")]


def attention_of_narrow_values(source: Source, line: int) -> Changes:
    """``attention(q, k, v.to(q.dtype))`` → ``attention(q.to(v.dtype), k.to(v.dtype), v)``.

    Where the values are cast in the call itself, to the dtype of a tensor or to float32.
    """
    for call in source.all(ast.Call):
        if called(call).rpartition(".")[2] != ATTENTION or not covers(call, line):
            continue
        match call.args[:3]:
            case [queries, keys, ast.Call(func=ast.Attribute(value=values, attr=method)) as cast]:
                name, given = dotted(values), [dotted(each) for each in cast.args]
            case _:
                continue
        to_tensors = len(given) == 1 and given[0].endswith(".dtype")
        wide = (method == "to" and (to_tensors or given == ["torch.float32"])) or (
            method == "float" and not given
        )
        if name and wide and not cast.keywords:
            changes = [(*source.span(cast), name)]
            for each in (queries, keys):
                changes.append((*source.span(each), f"{_alone(source, each)}.to({name}.dtype)"))
            yield changes


def without_weights(source: Source, _line: int) -> Changes:
    """``y, _ = self.attention(q, k, v)`` of an ``nn.MultiheadAttention`` → ``need_weights=False``.

    Where the weights are not used: taken as ``_``, or left out with ``[0]``.
    """
    made = {
        dotted(target).rpartition(".")[2]
        for node in source.all(ast.Assign)
        if called(node.value).rpartition(".")[2] == "MultiheadAttention"
        for target in node.targets
    }
    changes = []
    for call in source.all(ast.Call):
        given = {each.arg for each in call.keywords}
        if called(call).rpartition(".")[2] not in made or given & {"need_weights", None}:
            continue
        match source.parents[call]:
            case (
                ast.Assign(targets=[ast.Tuple(elts=[_, ast.Name(id="_")])])
                | ast.Subscript(slice=ast.Constant(value=0))
            ):
                changes.append(source.argument(call, "need_weights=False"))
    yield changes


def kept_by_index(source: Source, line: int) -> Changes:
    """``x.amax(dim=1)`` → ``x.max(dim=1).values``, where it is along one dimension."""
    for call, name, _, dim in _along_one(source, line, tuple(_BY_INDEX)):
        if dim is not None:
            end = source.span(call.func)[1]
            values = (source.span(call)[1],) * 2
            yield [(end - len(name), end, _BY_INDEX[name]), (*values, ".values")]


def scanned_together(source: Source, line: int) -> Changes:
    """``torch.cumsum(x, dim=0)`` → along the last dimension of a copy that has it contiguous."""
    for call, name, x, dim in _along_one(source, line, _SCANS):
        if dim not in (None, "-1") and not {each.arg for each in call.keywords} - {"dim"}:
            laid = f"{_alone(source, x)}.movedim({dim}, -1).contiguous()"
            yield [(*source.span(call), f"{laid}.{name}(dim=-1).movedim(-1, {dim})")]


def as_one_product(source: Source, line: int) -> Changes:
    """``torch.matmul(a, b)`` or ``a @ b`` → ``torch.einsum``, which folds a batch of ``b``."""
    for node in source.all(ast.expr):
        match node:
            case ast.Call(args=[a, b], keywords=[]) if called(node) == "torch.matmul":
                pass
            case ast.BinOp(left=a, op=ast.MatMult(), right=b):
                pass
            case _:
                continue
        if covers(node, line):
            both = f"{source.of(a)}, {source.of(b)}"
            yield [(*source.span(node), f'torch.einsum("ij,...jk->...ik", {both})')]


def in_forward_mode(source: Source, line: int) -> Changes:
    """``jacrev(f)`` → ``jacfwd(f)``, of the same module."""
    for node in source.all(ast.expr):
        if covers(node, line):
            match node:
                case ast.Attribute(value=owner, attr="jacrev"):
                    yield [(*source.span(node), f"{source.of(owner)}.jacfwd")]
                case ast.Name("jacrev"):
                    changed = (*source.span(node), "torch.func.jacfwd")
                    yield [changed, *source.importing("torch")]


def _along_one(
    source: Source, line: int, names: tuple[str, ...]
) -> Iterator[tuple[ast.Call, str, ast.expr, str | None]]:
    """Calls of these operators: the call, the name, the tensor, and the dimension if it is one."""
    for call in source.all(ast.Call):
        func = call.func
        if not isinstance(func, ast.Attribute) or func.attr not in names or not covers(call, line):
            continue
        given = call.args if dotted(func.value) == "torch" else [func.value, *call.args]
        dims = [each.value for each in call.keywords if each.arg == "dim"] or given[1:2]
        text = source.of(dims[0]) if dims else ""
        if given:
            yield call, func.attr, given[0], text if text.lstrip("-").isdecimal() else None


def distances_by_sums(source: Source, line: int) -> Changes:
    """``torch.cdist(x, y, p=1)`` → the sum of absolute differences, which has generated code."""
    for call in source.all(ast.Call):
        if called(call) == "torch.cdist" and covers(call, line) and len(call.args) >= 2:
            powers = [*call.args[2:3], *(each.value for each in call.keywords if each.arg == "p")]
            if [getattr(each, "value", None) for each in powers] == [1]:
                x, y = (_alone(source, each) for each in call.args[:2])
                text = f"({x}.unsqueeze(-2) - {y}.unsqueeze(-3)).abs().sum(-1)"
                yield [(*source.span(call), text)]


def fast_length(source: Source, line: int) -> Changes:
    """``N = a + b``, a length that a transform at ``line`` asks for → the next one that is fast.

    It has no other factors than 2, 3 and 5.
    """
    here = [each for each in source.all(ast.Call) if covers(each, line)]
    asked = {dotted(each.value) for call in here for each in call.keywords if each.arg == "n"}
    for name in sorted(asked - {""}):
        made = [n for n in source.all(ast.Assign) if [dotted(t) for t in n.targets] == [name]]
        if len(made) == 1:
            text = source.of(made[0].value)
            fast = f"next(n for n in range({text}, 2 * ({text})) if 30**30 % n == 0)"
            yield [(*source.span(made[0].value), fast)]


def rate_in_tensor(source: Source, _line: int) -> Changes:
    """A learning rate that a scheduler changes under a compiled ``optimizer.step`` is a tensor."""
    scheduled = any("lr_scheduler." in called(each) for each in source.all(ast.Call))
    stepping = any(
        dotted(part).endswith(".step") for call in source.compile_calls() for part in call.args
    )
    rates = [
        keyword.value
        for call in source.all(ast.Call)
        if called(call).startswith(("torch.optim.", "optim."))
        for keyword in call.keywords
        if keyword.arg == "lr"
        and isinstance(keyword.value, ast.Constant)
        and isinstance(keyword.value.value, float)
    ]
    if scheduled and stepping and len(rates) == 1 and source.imports("torch"):
        yield [(*source.span(rates[0]), f"torch.tensor({source.of(rates[0])})")]


def in_parts(source: Source, line: int) -> Changes:
    """Complex numbers of the function around ``line`` are pairs of real tensors where it compiles.

    By torch's ComplexTensor. ``1j`` is one as well, there and in what it calls.
    """
    function = source.function_at(line)
    if function is None:
        return
    inside = _reached(source, function)
    imaginary = [
        (node, node.value.imag)
        for each in inside
        for node in ast.walk(each)
        if isinstance(node, ast.Constant) and isinstance(node.value, complex)
    ]
    known = {each.attr for each in source.all(ast.Attribute)}
    if (imaginary or known & _COMPLEX) and source.imports("torch"):
        top, begin = source.top(function), source.span(function)[0]
        yield [
            *source.importing("functools"),
            (top, top, f"{_PARTS_FROM}\n\n{_PARTS}"),
            (begin, begin, f"@_in_parts\n{source.indent(function)}"),
            *((*source.span(node), f"_imaginary({value})") for node, value in imaginary),
        ]


def _reached(source: Source, function: Function) -> list[Function]:
    """It, and the functions of this file that it calls, directly or not."""
    functions = {each.name: each for each in source.all(Function)}
    found, todo = list[Function](), [function]
    while todo:
        one = todo.pop()
        if one not in found:
            found.append(one)
            names = {dotted(n).rpartition(".")[2] for n in ast.walk(one) if isinstance(n, ast.expr)}
            todo += [functions[name] for name in names & functions.keys()]
    return found


def without_autocast(source: Source, line: int) -> Changes:
    """``with torch.autocast("cpu", …):`` around ``line`` casts nothing."""
    for node in source.all(ast.With):
        for item in node.items if covers(node, line) else ():
            call = item.context_expr
            if isinstance(call, ast.Call) and called(call).rpartition(".")[2] == "autocast":
                named = {each.arg: each.value for each in call.keywords}
                device = call.args[0] if call.args else named.get("device_type")
                if getattr(device, "value", "") == "cpu" and "enabled" not in named:
                    yield [source.argument(call, "enabled=False")]


def added_apart(source: Source, line: int) -> Changes:
    """``torch.zeros(n).scatter_add(0, at, x)`` → into many tensors, which are added then.

    Where n is small, all threads add to the same few addresses.
    """
    for call in source.all(ast.Call):
        match call:
            case ast.Call(
                func=ast.Attribute(value=ast.Call(args=[size]) as made, attr=how),
                args=[ast.Constant(value=0), index, values],
            ) if how in ("index_add", "scatter_add") and called(made) == "torch.zeros":
                pass
            case _:
                continue
        if not covers(call, line) or not dotted(values):
            continue
        x = source.of(values)
        place = f"torch.arange({x}.shape[0], device={x}.device) % {_PLACES}"
        end = source.span(call)[1]
        yield [
            (*source.span(size), f"{_alone(source, size)} * {_PLACES}"),
            (*source.span(index), f"{_alone(source, index)} * {_PLACES} + {place}"),
            (end, end, f".view(-1, {_PLACES}).sum(1)"),
        ]


def _alone(source: Source, node: ast.expr) -> str:
    """Its text, in parentheses where what follows would take a part of it."""
    return source.of(node) if isinstance(node, SIMPLE) else f"({source.of(node)})"
