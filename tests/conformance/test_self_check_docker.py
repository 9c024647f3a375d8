"""The checks of test_self_check.py, what any sandbox must do, in containers of a real dockerd (the engine docker)."""
import pytest

from conformance import test_self_check
from e2e import test_docker
from helpers import requirement
from helpers.engines import again

pytestmark = [requirement("R41", "R61"), pytest.mark.root]
dockerd = test_docker.dockerd


@pytest.fixture
def env(cloche, dockerd):
    cloche.env["DOCKER_HOST"] = dockerd.host
    return test_self_check.Environment(cloche, "--engine", "docker")


again(globals())
