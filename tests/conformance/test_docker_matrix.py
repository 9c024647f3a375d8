"""cloche inside containers of a real dockerd: what each kind of container allows, as root and as uid 1000, with the project on the
container's overlay and on a volume. The strongest wall is built, it is named, and nothing inside is uid 0 or reads /etc/shadow.

Needs root, dockerd (Debian's docker.io), and a kernel and a machine that let it start; skips with its reason otherwise.
"""
import json
import re
import shutil

import pytest

from helpers import places, requirement
from helpers.containers import INSIDE, RUNS, check_walls, forms_of, parts, script_of
from helpers.dockerd import SHADOW, held_caps, started

pytestmark = [requirement("R01", "R05", "R06"), pytest.mark.root]
FREE = ["--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined"]
UNMASKED = ["--security-opt", "systempaths=unconfined"]
CONTAINERS = {
    "defaults": [], "no-filter": FREE, "admin": ["--cap-add", "SYS_ADMIN"], "unmasked": [*FREE, *UNMASKED],
    "all": [*FREE, *UNMASKED, *(word for cap in held_caps() for word in ("--cap-add", cap))],
}
STANDARD = {("admin", 0), ("unmasked", 0), ("unmasked", 1000), ("all", 0), ("all", 1000)}
# what a run says that it is, on overlay and on a volume
FORMS = {("admin", "overlay"): {"chroot", "owner"}, ("admin", "volume"): {"chroot"}, ("all", "overlay"): {"owner"},
         ("unmasked", "overlay"): {"root"}, ("unmasked", "volume"): {"root"}}


@pytest.fixture(scope="module")
def dockerd(binary):
    with started() as made:
        made.programs = binary.parent.parent
        made.make_image([binary, *made.programs.glob("*/cloche-*")])
        yield made


@pytest.fixture
def inside(dockerd, world):
    """inside("admin", 0, script) → what a shell in such a container prints; `$C` is cloche, /vol a volume."""
    def run(container, uid, script, *more):
        volume = world.root / "vol"
        for name in ("vol", "vol/0", "vol/1000"):
            (world.root / name).mkdir(exist_ok=True)
        shutil.chown(volume / "1000", 1000, 1000)
        words = [*CONTAINERS[container], "-u", f"{uid}:{uid}", "-v", f"{dockerd.programs}:/opt/cloche:ro", "-v", f"{volume}:/vol",
                 "-e", "C=/opt/cloche/cli/cloche", "-e", "HOME=/tmp/home", *more]
        return dockerd.run(words, ["/bin/bash", "-c", "mkdir -p /tmp/home /tmp/overlay; " + script])
    return run


@pytest.mark.parametrize("container,uid", [(c, u) for c in CONTAINERS for u in (0, 1000)], ids=lambda v: str(v))
def test_matrix(inside, container, uid):
    said = inside(container, uid, script_of(uid), "-e", f"INSIDE={INSIDE}")
    got = parts(said.stdout)
    assert len(got) == 2 * len(RUNS), said
    for (place, name), text in got.items():
        where = (container, uid, place, name, text)
        forms = forms_of(text)
        if name.startswith("light"):
            if name == "light-rw" and uid == 0:
                # root's own folder is not opened to a sandbox that must not be root; the way out is one that works
                assert "status 125" in text and "[wall.light.root-folder]" in text and "chown -R 1000:1000" in text, where
                continue
            assert "status 0" in text and "got hello" in text and not re.search(r"^uid 0$", text, re.M), where
            assert ("made 1000" in text) == (name == "light-rw"), where
            assert SHADOW.strip() not in text and re.search(r"CapEff:\t0{16}", text), where
        elif (container, uid) not in STANDARD:
            assert "status 125" in text and "--mode light" in text and "run as uid 0" not in text, where
            assert ("[wall.namespaces.unavailable]" if container == "defaults" else "systempaths=unconfined") in text, where
        else:
            assert "status 0" in text and "got hello" in text and "uid 1000" in text, where
            check_walls(text)
            assert ("made" in text.splitlines()[-1]) == (name != "ro"), where
            if name != "ro":
                assert f"made {uid}" in text, where
            if uid == 0:
                place_of = "overlay" if name == "host" else place       # the host view is of the container's own tree
                assert forms == FORMS.get((container, place_of), set()), where


def test_a_folder_of_an_ordinary_user(inside):
    """As root of a container that gives SYS_ADMIN: the sandbox is the folder's owner, which is not root."""
    said = inside("admin", 0, "chown 1000:1000 /tmp/overlay; cd /tmp/overlay; echo hello > f; chown 1000 f\n"
                  "$C run --workspace .:rw -- /bin/sh -c \"$INSIDE\"; stat -c 'made %u' made\n"
                  "$C run --mode light --workspace .:rw -- /bin/sh -c 'echo l > light; id -u'; stat -c 'light %u' light",
                  "-e", f"INSIDE={INSIDE}")
    assert "uid 1000 outside" in said.stderr and "made 1000" in said.stdout and "light 1000" in said.stdout, said
    check_walls(said.stdout)


def test_copy_on_write_with_its_state_on_a_volume(inside):
    said = inside("admin", 0, "cd /tmp/overlay; echo hello > f; export XDG_STATE_HOME=/vol/0\n"
                  "$C run --workspace .:cow -- /bin/sh -c 'echo new > f; echo n > made'; cat f; ls; $C diff --name-only")
    assert "hello" in said.stdout and not re.search(r"^made$", said.stdout, re.M) and "made" in said.stdout, said


def test_no_user_namespaces_behind_a_chroot(inside):
    said = inside("admin", 0, "cd /vol/0; echo '{\"allow-nested-user-namespaces\": true}' > /tmp/s.json; "
                  "$C run --settings /tmp/s.json -- /bin/true; echo status $?")
    assert "status 125" in said.stdout and "[wall.root.chroot]" in said.stderr, said


def test_root_without_capabilities_keeps_its_secrets(inside):
    """It cannot become anybody else: it is said, and root's secrets are closed."""
    said = inside("defaults", 0, "cd /tmp/overlay; $C run --mode light -- /bin/sh -c 'id -u; cat /etc/shadow; cat /etc/group'",
                  "--cap-drop", "ALL")
    assert SHADOW.strip() not in said.stdout and "root:x:0:" in said.stdout and "uid 0 outside" in said.stderr, said


def test_doctor_names_the_forms(inside):
    said = inside("admin", 0, "cd /tmp/overlay; $C doctor --json; echo; echo status $?")
    seen = json.loads(said.stdout[:said.stdout.rindex("}") + 1])
    features = seen["features"]
    assert seen["host"]["container"] == "docker" and seen["modes"]["standard"]["usable"], seen
    assert features["proc"]["status"] == "yes" and "from outside" in features["proc"]["detail"]
    assert features["idmapped-mounts"]["status"] == "partial" and 'form "owner"' in features["idmapped-mounts"]["detail"]
    assert features["pivot-root"]["status"] == "partial" and 'form "chroot"' in features["pivot-root"]["detail"]


def test_a_missing_library_is_named(inside):
    said = inside("admin", 0, "cd /vol/0; rm -f /usr/lib/*/libnghttp2.so*; timeout 60 $C run --allow-domain ok.example.org -- "
                  "/bin/sleep 5; $C doctor --json")
    assert re.search(r"cloche-egress cannot start: .*libnghttp2\.so", said.stderr) and "within a minute" not in said.stderr, said
    seen = json.loads(said.stdout[said.stdout.index("{"):])
    assert "libnghttp2.so" in seen["own_programs"]["cloche-egress"]["lacks"], seen["own_programs"]


# --- the recipe -------------------------------------------------------------------------------------------------------

@pytest.fixture
def runner_image(dockerd, world):
    return dockerd.make_ours(world.root / "context", "runner", "cloche-runner")


@pytest.mark.parametrize("wall", ["light", "standard"])
def test_the_runner_recipe(dockerd, runner_image, command, world, wall):
    project = world.root / "job"
    project.mkdir()
    shutil.chown(project, 1000, 1000)
    said = command(["/bin/sh", places.REPO / "deploy/ci/docker-job", wall, "id -u; echo made > made; ! cat /etc/shadow"], check=False,
                   cwd=project, env={"DOCKER_HOST": dockerd.host, "IMAGE": runner_image, "DOCKER_FLAGS": "--network none",
                                     "PATH": "/usr/bin:/bin", "HOME": str(world.root)})
    assert said.ok and (project / "made").exists(), said
    assert (project / "made").read_text("utf-8") == "made\n" and "SHADOW" not in said.out and "1000" in said.out, said
    assert (project / "made").stat().st_uid == 1000 and (project / "cloche.json").exists(), said
