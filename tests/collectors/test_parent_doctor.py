"""What doctor finds, and what it says where something is missing."""

from pathlib import Path

import pytest
from parent_helpers import environment

from traceview.collectors import doctor


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("doctor")


def by_name(checks):
    return {check.name: check for check in checks}


def answer(**changes):
    facts = {
        "python_version": [3, 12, 3],
        "prefix": "/env",
        "cache": "/tmp/torchinductor_me",
        "torch_version": "2.11.0+cu130",
        "cuda_version": "13.0",
        "device": "NVIDIA H200",
        "activities": ["CPU", "CUDA"],
        "compiler": "sh",
        "triton_version": "3.6.0",
    }
    return {**facts, **changes}


def examined(monkeypatch, **changes):
    monkeypatch.setattr(doctor, "ask", lambda *_: answer(**changes))
    return by_name(doctor.examine("/env/bin/python"))


def test_all_is_well_on_a_gpu(monkeypatch):
    checks = examined(monkeypatch)
    names = ["python", "torch", "triton", "C++ compiler", "GPU", "profiler"]
    assert {checks[name].status for name in names} == {"ok"}
    assert checks["GPU"].found == "NVIDIA H200"


def test_what_is_missing_says_what_to_do(monkeypatch):
    checks = examined(
        monkeypatch, triton_version=None, activities=["CPU"], compiler=None, torch_version="2.4.0"
    )
    assert checks["triton"].status == "missing"
    assert checks["profiler"].status == "limited"
    assert "CUPTI" in checks["profiler"].remedy
    assert checks["C++ compiler"].status == "missing"
    assert checks["torch"].status == "missing"
    assert all(check.remedy for check in checks.values() if check.status != "ok")


def test_a_machine_without_a_gpu_is_limited_not_broken(monkeypatch):
    checks = examined(monkeypatch, device=None, triton_version=None, cuda_version=None)
    assert (checks["GPU"].status, checks["triton"].status) == ("limited", "limited")


def test_an_interpreter_without_torch(home):
    checks = by_name(doctor.examine(environment(home, None)))
    assert checks["python"].status == "ok"
    assert checks["torch"].status == "missing"
    assert "No module named 'torch'" in checks["torch"].found
    assert "tlparse" in checks


def test_no_interpreter_at_all():
    checks = by_name(doctor.examine("/nowhere/python"))
    assert checks["python"].status == "missing"
    assert "free disk" in checks


def test_a_folder_that_cannot_be_written(monkeypatch):
    checks = examined(monkeypatch, cache="/dev/null/cache")
    assert checks["Inductor cache"].status == "missing"
    assert examined(monkeypatch, cache=str(Path.cwd() / "new"))["Inductor cache"].status == "ok"
