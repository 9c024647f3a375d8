"""The checks of test_self_check.py, what any sandbox must do, in containers of a real dockerd (the engine docker)."""
import types

import pytest

from conformance import test_self_check
from e2e import test_docker
from helpers import requirement

pytestmark = [requirement("R41", "R61"), pytest.mark.root]
dockerd = test_docker.dockerd


@pytest.fixture
def env(cloche, dockerd):
    cloche.env["DOCKER_HOST"] = dockerd.host
    made = test_self_check.Environment(cloche)
    start = made.exec
    made.exec = lambda *argv, flags=(), **kw: start(*argv, flags=("--engine", "docker", *flags), **kw)
    return made


def again(function):
    """The same test in this module, and so with its `env`."""
    made = types.FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    made.__doc__ = function.__doc__
    made.pytestmark = list(getattr(function, "pytestmark", []))
    return made


for name, value in list(vars(test_self_check).items()):
    if name.startswith("test_") and isinstance(value, types.FunctionType):
        globals()[name] = again(value)
