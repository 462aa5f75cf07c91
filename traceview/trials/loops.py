"""Changes of what stands around a step or in a loop: optimizer, loader, what is made again."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traceview.derive.syntax import covers
from traceview.trials.source import Changes, Source, called, dotted, loaded, stored

#: Optimizers of torch that have ``fused=True``; the others have ``foreach=True``, by default on a
#: GPU but for Adafactor.
_FUSED = ("Adagrad", "Adam", "AdamW", "SGD")
_FOREACH = ("ASGD", "Adadelta", "Adafactor", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop")
#: As many as a small machine has cores for, next to the step.
_WORKERS = 4
#: With them, it is said already whether workers are kept, or it may be.
_KEPT = frozenset({"persistent_workers", None})
#: Functions whose result depends on their arguments alone, and is only read.
_MAKERS = ("create_block_mask", "create_nested_block_mask")
_MERGED = '''def _merged(groups):
    """Param groups with the same options are one."""
    found, groups = {}, list(groups)
    if not isinstance(groups[0], dict):
        return groups
    for group in groups:
        options = {k: v for k, v in group.items() if k not in ("params", "name")}
        one = found.setdefault(repr(sorted(options.items())), {**options, "params": []})
        params = group["params"]
        one["params"] += [params] if hasattr(params, "grad") else list(params)
    return list(found.values())


'''

_STACKED = '''def _tensor(values, **options):
    """torch.tensor reads several arrays number by number, and one array at once."""
    if isinstance(values, (list, tuple)) and values and isinstance(values[0], np.ndarray):
        values = np.stack(values)
    return torch.tensor(values, **options)


'''


def fused_optimizer(source: Source, line: int) -> Changes:
    """The optimizer that steps at ``line`` gets ``fused=True``, or ``foreach=True``."""
    for call in _optimizers(source, line):
        name = called(call).rpartition(".")[2]
        given = {each.arg: each for each in call.keywords}
        if given.keys() & {None, "fused", "capturable", "differentiable"}:
            continue
        others = name in _FOREACH and ("foreach" in given or name == "Adafactor")
        if name not in _FUSED and not others:
            continue
        how = "fused=True" if name in _FUSED else "foreach=True"
        if foreach := given.get("foreach"):
            yield [(*source.span(foreach), how)]
        else:
            yield [source.argument(call, how)]


def groups_merged(source: Source, line: int) -> Changes:
    """``AdamW(groups)`` of the optimizer that steps at ``line`` → one group for equal options."""
    by_number = any(
        isinstance(each.value, ast.Attribute) and each.value.attr == "param_groups"
        for each in source.all(ast.Subscript)
    )
    lambdas = any(called(each).rpartition(".")[2] == "LambdaLR" for each in source.all(ast.Call))
    for call in _optimizers(source, line):
        given = call.args[0] if call.args else None
        plain = called(given).rpartition(".")[2] == "parameters" or isinstance(given, ast.List)
        if given is not None and not (plain or by_number or lambdas):
            at, merged = source.top(call), f"_merged({source.of(given)})"
            yield [(at, at, _MERGED), (*source.span(given), merged)]


def _optimizers(source: Source, line: int) -> list[ast.Call]:
    """The calls that make what steps at ``line``; one for all where the file makes one only."""
    makers = [
        call
        for call in source.all(ast.Call)
        if called(call).startswith(("torch.optim.", "optim."))
        and "lr_scheduler" not in called(call)
    ]
    stepped = [
        call.func.value
        for call in source.all(ast.Call)
        if call.lineno == line
        if isinstance(call.func, ast.Attribute) and call.func.attr == "step"
    ]
    here = {dotted(each) for each in stepped}
    named = [
        call
        for call in makers
        if isinstance(above := source.parents[call], ast.Assign)
        and here & {dotted(target) for target in above.targets}
    ]
    return named if len(named) == 1 else makers if stepped and len(makers) == 1 else []


def stacked_first(source: Source, line: int) -> Changes:
    """``torch.tensor(arrays)`` of a function stacks the arrays of a list first."""
    function = source.function_at(line)
    calls = [
        call
        for call in (ast.walk(function) if function is not None else ())
        if isinstance(call, ast.Call) and called(call) == "torch.tensor" and len(call.args) == 1
        if isinstance(call.args[0], ast.Name | ast.Attribute | ast.Subscript)
    ]
    numpy = any(
        (each.name, each.asname) == ("numpy", "np")
        for node in source.all(ast.Import)
        for each in node.names
    )
    if function is not None and numpy and any(covers(call, line) for call in calls):
        at = source.top(function)
        named = ((*source.span(call.func), "_tensor") for call in calls)
        yield [(at, at, _STACKED), *named]


def workers_kept(source: Source, line: int) -> Changes:
    """``DataLoader(…, num_workers=2)`` keeps its worker processes for the next iterator."""
    for call in _loaders(source):
        given = {each.arg for each in call.keywords}
        if covers(call, line) and "num_workers" in given and not given & _KEPT:
            yield [source.argument(call, "persistent_workers=True")]


def loaded_by_workers(source: Source, line: int) -> Changes:
    """``DataLoader(data)``, whose batches the step's own process makes, gets worker processes."""
    loaders = _loaders(source)
    for call in loaders:
        above = source.parents[call]
        made = {dotted(each) for each in above.targets} if isinstance(above, ast.Assign) else set()
        statement = source.at(line, ast.For)
        read = loaded([statement.iter]) if statement is not None else set()
        if not (covers(call, line) or made & read or len(loaders) == 1):
            continue
        given = {each.arg: each for each in call.keywords}
        number = given.get("num_workers")
        if None in given or (number is not None and source.of(number.value) != "0"):
            continue
        text = f"num_workers={_WORKERS}, persistent_workers=True"
        if number is not None:
            yield [(*source.span(number), text)]
        elif call.args or call.keywords:
            yield [source.argument(call, text)]


def _loaders(source: Source) -> list[ast.Call]:
    return [e for e in source.all(ast.Call) if called(e).rpartition(".")[2] == "DataLoader"]


def made_before_loop(source: Source, line: int) -> Changes:
    """``create_block_mask(…)`` in a loop that changes nothing of it comes before the loop."""
    calls = [each for each in source.all(ast.Call) if covers(each, line) and _makes(source, each)]
    statement = source.at(line, ast.stmt)
    loop = source.parents.get(statement) if statement is not None else None
    if not isinstance(loop, ast.For | ast.While) or statement not in loop.body or not calls:
        return
    call, at, pad = calls[0], source.lines([loop])[0], source.indent(loop)
    if _read(source, [call]) & _changed(loop, but=statement):
        return
    if isinstance(statement, ast.Assign) and statement.value is call:
        again = stored(statement.targets) & _changed(loop, but=statement)
        if source.alone([statement]) and not again:
            moved = source.text([statement], pad)
            yield [(at, at, moved), (*source.lines([statement]), "")]
    elif "block_mask" not in loaded([source.tree]) | stored([source.tree]):
        made = f"{pad}block_mask = {source.of(call)}\n"
        yield [(at, at, made), (*source.span(call), "block_mask")]


def taken_at_once(source: Source, line: int) -> Changes:
    """``x[:, t]`` in a loop over a range → ``x_parts[t]``, of ``x_parts = x.unbind(1)`` before it.

    All such slices that the loop, or the comprehension, has; ``x`` and ``t`` must stay what they
    are in it.
    """
    for counter, statement, nodes, changed in _ranges(source, line):
        found: dict[tuple[str, int, bool], list[ast.Subscript]] = {}
        for node in nodes:
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
                dim, name = _place(node.slice, counter), dotted(node.value)
                if dim is not None and name and name.partition(".")[0] not in changed:
                    key = name, dim, isinstance(node.slice, ast.Tuple)
                    found.setdefault(key, []).append(node)
        here = [key for key, nodes in found.items() if any(covers(node, line) for node in nodes)]
        surely = [key for key in here if key[2]] or here  # x[t] may be of a list
        pad, at = source.indent(statement), source.lines([statement])[0]
        for key in surely:
            name, dim, _ = key
            parts = f"{name.replace('.', '_')}_parts"
            if parts not in loaded([source.tree]) | stored([source.tree]):
                new = [(*source.span(node), f"{parts}[{counter}]") for node in found[key]]
                yield [(at, at, f"{pad}{parts} = {name}.unbind({dim})\n"), *new]


def counted_on_device(source: Source, line: int) -> Changes:
    """``total[c] += x.sum().item()`` → tensors are added, and nothing waits for the device."""
    function = source.function_at(line)
    changes = []
    for node in ast.walk(function) if function is not None else ():
        match node:
            case ast.AugAssign(
                op=ast.Add(), value=ast.Call(func=ast.Attribute(value=tensor, attr="item")) as value
            ):
                changes.append((*source.span(value), source.of(tensor)))
    yield changes


def memory_kept(source: Source, line: int) -> Changes:
    """``torch.cuda.empty_cache()`` in each step goes."""
    node = source.at(line, ast.Expr)
    if node is not None and called(node.value) == "torch.cuda.empty_cache":
        yield [source.removed(node)]


def written_into_data(source: Source, line: int) -> Changes:
    """``param.data = new`` → ``param.data.copy_(new)``, which leaves the address as it is."""
    function = source.function_at(line)
    for node in ast.walk(function) if function is not None else ():
        if isinstance(node, ast.Assign) and covers(node, line):
            target = node.targets[0]
            if isinstance(target, ast.Attribute) and target.attr == "data":
                text = f"{source.of(target)}.copy_({source.of(node.value)})"
                yield [(*source.span(node), text)]


def _ranges(source: Source, line: int) -> Iterator[tuple[str, ast.stmt, list[ast.AST], set[str]]]:
    """What counts over a range at ``line``: its counter, the statement, what is in it, and names
    that it changes."""
    for loop in source.all(ast.For):
        inside = [node for each in loop.body for node in ast.walk(each)]
        counter, changed = dotted(loop.target), _changed(loop, but=ast.Pass())
        plain = counter.isidentifier() and counter not in stored(loop.body)
        if covers(loop, line) and called(loop.iter) == "range" and plain:
            yield counter, loop, inside, changed
    statement = source.at(line, ast.stmt)
    for made in ast.walk(statement) if statement is not None else ():
        if isinstance(made, ast.GeneratorExp | ast.ListComp) and len(made.generators) == 1:
            each, counter = made.generators[0], dotted(made.generators[0].target)
            if statement and called(each.iter) == "range" and counter and not each.ifs:
                yield counter, statement, list(ast.walk(made.elt)), set()


def _place(index: ast.expr, counter: str) -> int | None:
    """The dimension of which ``index`` takes the place ``counter``, and all of the others."""
    items = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    if len(items) == 2 and getattr(items[0], "value", None) is ... and dotted(items[1]) == counter:
        return -1
    places = [
        n
        for n, each in enumerate(items)
        if not isinstance(each, ast.Slice) or each.lower or each.upper or each.step
    ]
    return places[0] if len(places) == 1 and dotted(items[places[0]]) == counter else None


def _makes(source: Source, call: ast.Call) -> bool:
    """Whether it makes a mask, or a function of this file does that returns nothing else."""
    name = called(call)
    own = [each for each in source.all(ast.FunctionDef) if each.name == name]
    returned = [e.value for e in source.all(ast.Return) if source.owner(e) in own]
    makers = returned if own else [call]
    return bool(makers) and all(called(e).rpartition(".")[2] in _MAKERS for e in makers if e)


def _changed(loop: ast.For | ast.While, *, but: ast.stmt) -> set[str]:
    """Names that ``loop`` sets, or whose contents it may change, the statement ``but`` apart."""
    inside = set(ast.walk(but))
    nodes = [each for each in ast.walk(loop) if each not in inside]
    found = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            found |= loaded([node.value])
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            writes = node.func.attr.endswith("_") or node.func.attr in ("append", "update")
            found |= loaded([node.func.value]) if writes else set()
    return found


def _read(source: Source, nodes: list[ast.expr]) -> set[str]:
    """Names that these read, with those of the functions of this file that they name."""
    found, todo = set[str](), loaded(nodes)
    functions = {each.name: each for each in source.all(ast.FunctionDef)}
    while todo:
        name = todo.pop()
        if name in functions and name not in found:
            todo |= loaded([functions[name]])
        found.add(name)
    return found
