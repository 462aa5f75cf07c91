"""Runs a script under settings of ``traceview try``: ``configured.py JSON-LIST SCRIPT ARGS``."""

import contextlib
import importlib
import json
import runpy
import sys
from pathlib import Path

import torch

from traceview.collectors.child.settings import parse


def main():
    given, script, *args = sys.argv[1:]
    how, options, around, eager = {}, {}, [], set()
    for setting in map(parse, json.loads(given)):
        if setting.kind == "compile":
            how[setting.name] = setting.value
        elif setting.kind == "option":
            options[setting.name] = setting.value
        elif setting.kind in ("config", "attribute"):
            owner = importlib.import_module(setting.owner)
            if setting.kind == "attribute":
                setattr(owner, setting.name, setting.value)
            else:
                owner.patch({setting.name: setting.value}).__enter__()
        elif setting.name == "float32_matmul_precision":
            torch.set_float32_matmul_precision(setting.value)
        elif setting.name == "num_threads":
            torch.set_num_threads(setting.value)
        elif setting.name == "guards":
            options["guard_filter_fn"] = torch.compiler.skip_guard_on_all_nn_modules_unsafe
        elif setting.name in ("no_grad", "inference_mode"):
            around.append(getattr(torch, setting.name))
        elif setting.kind == "stance":
            torch.compiler.set_stance = lambda *_, **__: contextlib.nullcontext()
        elif setting.kind == "eager":
            eager.add(setting.name)
        else:
            sys.exit(f"not known here: {setting}")
    plain = torch.compile

    def compile(model=None, **own):
        own |= how
        if options:
            own["options"] = {**(own.get("options") or {}), **options}
            own.pop("mode", None)
        if model is None:
            return lambda fn: compile(fn, **own)
        if {getattr(model, "__qualname__", ""), type(model).__name__} & eager:
            return model
        made = plain(model, **own)
        return around[0]()(made) if around and not isinstance(made, torch.nn.Module) else made

    torch.compile = compile
    if around:
        torch.set_grad_enabled(False)
    sys.argv = [script, *args]
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


main()
