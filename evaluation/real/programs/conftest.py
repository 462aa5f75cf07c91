"""The options that all programs have, for the one that pytest runs."""


def pytest_addoption(parser):
    parser.addoption("--device", choices=("cpu", "cuda"))
    parser.addoption("--steps", type=int)
