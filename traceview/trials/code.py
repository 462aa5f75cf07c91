"""Settings as the lines of torch code that a user would write for them."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterable

_ARGUMENTS = ("mode", "dynamic", "backend", "fullgraph")
_OPTIONS = "options."
_VARIABLE = "env."
_GUARDS = '"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe'
_AROUND = "  # around the compiled calls"
_LINES = {
    "float32_matmul_precision": "torch.set_float32_matmul_precision({1})",
    "num_threads": "torch.set_num_threads({1})",
    "no_grad": f"with torch.no_grad():{_AROUND}",
    "inference_mode": f"with torch.inference_mode():{_AROUND}",
    "autocast": "with torch.autocast(x.device.type, dtype=torch.{0}):" + _AROUND,
    "sdpa": "with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.{0}):" + _AROUND,
    "channels_last": (
        "model = model.to(memory_format=torch.channels_last)\n"
        "x = x.to(memory_format=torch.channels_last)  # inputs of 4 dimensions"
    ),
    "eager": "{0} = torch.compiler.disable({0})",
    "torch.backends.mha._is_fastpath_enabled": "torch.backends.mha.set_fastpath_enabled({1})",
}


def code_of(settings: Iterable[str]) -> tuple[str, ...]:
    """Statements to paste: configuration first, then the call of torch.compile, then contexts."""
    arguments: dict[str, object] = {}
    options: list[str] = []
    before: list[str] = []
    around: list[str] = []
    for setting in settings:
        name, _, text = setting.partition("=")
        value = _value(text)
        if name in _ARGUMENTS:
            arguments[name] = value
        elif name.startswith(_OPTIONS):
            options.append(f'"{name.removeprefix(_OPTIONS)}": {_quoted(value)}')
        elif name.startswith(_VARIABLE):
            before.append(
                f"export {name.removeprefix(_VARIABLE)}={shlex.quote(text)}  # in the shell"
            )
        elif name == "guards":
            options.append(_GUARDS)
        elif name in _LINES:
            lines = _LINES[name].format(value, _quoted(value)).split("\n")
            (around if lines[0].startswith("with ") else before).extend(lines)
        else:
            before.append(f"{name} = {_quoted(value)}")
    if options and (mode := arguments.pop("mode", None)) is not None:  # torch takes one of the two
        options.insert(0, f"**torch._inductor.list_mode_options({_quoted(mode)})")
    given = [f"{name}={_quoted(value)}" for name, value in arguments.items()]
    given += [f"options={{{', '.join(options)}}}"] if options else []
    call = [f"torch.compile(..., {', '.join(given)})"] if given else []
    return (*before, *call, *around)


def _value(text: str) -> object:
    """A Python literal; anything else is a string."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _quoted(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) and value.isprintable() else repr(value)
