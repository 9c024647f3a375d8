"""cloche inside Podman's containers, of root and of an ordinary user: what each kind allows, as the container's root and as uid 1000, with
the project on the container's overlay and on a volume.

Needs root, Podman with runc (Debian's packages), and a machine that lets a container start; skips with its reason otherwise.
"""
import json
import re
import shutil

import pytest

from helpers import places, requirement
from helpers.containers import INSIDE, RUNS, check_walls, forms_of, parts, script_of
from helpers.dockerd import SHADOW
from helpers.podman import Podman, lacks

pytestmark = [requirement("R01", "R05", "R06"), pytest.mark.root]
FREE, UNMASKED = ["--security-opt", "seccomp=unconfined"], ["--security-opt", "unmask=ALL"]
CONTAINERS = {"defaults": [], "no-filter": FREE, "admin": ["--cap-add", "SYS_ADMIN"], "filtered": UNMASKED, "unmasked": [*FREE, *UNMASKED],
              "privileged": ["--privileged"]}
STANDARD = {("admin", 0), ("unmasked", 0), ("unmasked", 1000), ("privileged", 0), ("privileged", 1000)}
# of the containers of the host's root: what a run says that it is. The root of an ordinary user's is an ordinary user.
FORMS = {("admin", "overlay"): {"owner"}, ("privileged", "overlay"): {"owner"}, ("unmasked", "overlay"): {"root"}, ("unmasked", "volume"): {"root"}}
REFUSALS = {"defaults": "[wall.uts]", "filtered": "[wall.uts]", "no-filter": "[wall.mount]", "admin": "[wall.mount]"}


@pytest.fixture(scope="module", params=["root", "rootless"])
def podman(request, binary):
    rootless = request.param == "rootless"
    if not places.IS_ROOT:
        pytest.skip("needs root on the host")
    if (name := lacks(rootless)) is not None:
        pytest.skip(f"no {name}: apt-get install podman runc uidmap fuse-overlayfs")
    made = Podman(places.ordinary_user() if rootless else None)
    try:
        made.programs = binary.parent.parent
        why = made.make_image([binary, *(p for p in made.programs.glob("*/cloche-*") if p.is_file())])
        if why is not None:
            pytest.skip(f"Podman starts no container here: {why}")
        yield made
    finally:
        made.end()


@pytest.fixture
def inside(podman, world):
    def run(container, uid, script, *more):
        volume = world.root / "vol"
        for owner in (0, 1000):
            (volume / str(owner)).mkdir(exist_ok=True, parents=True)
            shutil.chown(volume / str(owner), podman.outside(owner), podman.outside(owner))
        return podman.run([*CONTAINERS[container], "-u", f"{uid}:{uid}", "-v", f"{podman.programs}:/opt/cloche:ro", "-v", f"{volume}:/vol",
                           "-e", "C=/opt/cloche/cli/cloche", "-e", "HOME=/tmp/home", *more],
                          ["/bin/bash", "-c", "mkdir -p /tmp/home /tmp/overlay; " + script])
    return run


@pytest.mark.parametrize("container,uid", [(c, u) for c in CONTAINERS for u in (0, 1000)], ids=lambda v: str(v))
def test_matrix(podman, inside, container, uid):
    said = inside(container, uid, script_of(uid), "-e", f"INSIDE={INSIDE}")
    got = parts(said.stdout)
    assert len(got) == 2 * len(RUNS), said
    roots = podman.account is None and uid == 0
    for (place, name), text in got.items():
        where = (container, uid, place, name, text)
        if name == "light-rw" and roots:
            assert "status 125" in text and "[wall.light.root-folder]" in text, where
        elif name.startswith("light"):
            assert "status 0" in text and "got hello" in text and SHADOW.strip() not in text, where
            assert re.search(r"CapEff:\t0{16}", text) and (not roots or not re.search(r"^uid 0$", text, re.M)), where
            assert (f"made {uid}" in text) == (name == "light-rw"), where
        elif (container, uid) not in STANDARD:
            assert "status 125" in text and "--mode light" in text and REFUSALS[container] in text and "unmask=ALL" in text, where
        else:
            assert "status 0" in text and "got hello" in text and "uid 1000" in text, where
            check_walls(text)
            assert (f"made {uid}" in text) == (name != "ro"), where
            # the host view is of the container's own tree
            assert forms_of(text) == (FORMS.get((container, "overlay" if name == "host" else place), set()) if roots else set()), where


@pytest.mark.parametrize("container,uid", [("filtered", 0), ("unmasked", 1000), ("unmasked", 0), ("privileged", 0)])
def test_proof(podman, inside, container, uid):
    """No false alarm: what cannot be built is passed over, limits of a container's own cgroups are found, and the root of an ordinary
    user's container is that user. Only form "root" is not all that is promised."""
    said = inside(container, uid, "cd /tmp/overlay; timeout 120 $C prove --quick --json")
    odd = {check["id"] for mode in json.loads(said.stdout)["modes"] for check in mode["checks"] if check["state"] == "surprise"}
    named = podman.account is None and (container, uid) == ("unmasked", 0)
    assert odd == ({"posture.identity.map", "outside.identity", "outside.neighbour.uid"} if named else set()), said
