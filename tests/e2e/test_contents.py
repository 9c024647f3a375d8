"""What of the host's system somebody's code finds: languages and their standard libraries, and what the policy names."""
import json
import os
import subprocess

import pytest

from helpers import requirement
from helpers.daemon import Daemon, caller

pytestmark = requirement("R64")
MODULES = ("pip", "setuptools", "yaml", "pytest", "requests", "apt", "attr", "six", "packaging")
PROGRAMS = ("curl", "wget", "ssh", "scp", "sftp", "nc", "nc.openbsd", "nc.traditional", "ncat", "socat", "telnet")
LOOK = f"""
import importlib.util, json, os, shutil, sqlite3, ssl, ctypes, asyncio
print(json.dumps([[m for m in {MODULES} if importlib.util.find_spec(m)], [p for p in {PROGRAMS} if shutil.which(p)],
                  sum(" /usr" in line for line in open("/proc/self/mountinfo"))]))
"""


@pytest.fixture
def host(has):
    """What there is outside."""
    has("python3")
    if not os.path.realpath("/usr/bin/python3").startswith("/usr/bin/python3."):
        pytest.skip("no python3 of the system's")
    done = subprocess.run(["/usr/bin/python3", "-c", LOOK], capture_output=True, check=True, text=True,
                          env={"PATH": "/usr/local/bin:/usr/bin:/bin"}, cwd="/")
    modules, programs, _ = json.loads(done.stdout)
    if not modules or not programs:
        pytest.skip("this host has no package of Python's, or none of the programs")
    return modules, programs


def look(cloche, verb, *flags):
    words = ("code", "--language", "python", *flags, "-") if verb == "code" else (verb, *flags, "--", "python3", "-c", LOOK)
    result = cloche(*words, stdin=LOOK)
    assert result.ok, result
    modules, programs, mounts = json.loads(result.out)
    return modules, programs, mounts


def test_code_finds_no_more_than_its_language(anyone, host):
    modules, programs, mounts = look(anyone, "code")
    assert modules == [] and programs == []
    # each mount is on the way to a sandbox: one a program or folder that is there, and no others
    assert mounts <= 2 + len(host[1]) + 6, mounts


def test_run_finds_what_the_host_has(anyone, host):
    assert look(anyone, "run")[:2] == host
    assert look(anyone, "code", "--contents", "host")[:2] == host
    assert look(anyone, "run", "--contents", "minimal")[:2] == ([], [])
    assert look(anyone, "code", "--mode", "max")[:2] == ([], [])


def test_what_the_policy_names(cloche, host):
    one = host[1][0]
    name = {"scp": "ssh", "sftp": "ssh", "curl": "curl", "wget": "wget", "ssh": "ssh"}.get(one, "nc")
    modules, programs, _ = look(cloche, "code", "--with", name, "--with", "python-packages")
    assert modules == host[0] and one in programs and (len(programs) < len(host[1]) or len(programs) == 1 or name == "ssh")


def test_what_is_left_out_cannot_be_run_by_its_path(cloche, host):
    path = next((p for p in ("/usr/bin/curl", "/usr/bin/wget", "/usr/bin/ssh") if os.path.isfile(p) and not os.path.islink(p)), None)
    if path is None:
        pytest.skip("none of these programs is here")
    result = cloche("code", "--language", "shell", "-", stdin=f"{path} --version; echo $?; head -c 1 {path} | wc -c; chmod 755 {path}; {path} -V; echo $?")
    assert result.out.split() == ["126", "0", "126"], result


def test_packages_of_node(cloche, has):
    has("node")
    folder = next((f for f in ("/usr/lib/node_modules", "/usr/local/lib/node_modules") if os.path.isdir(f"{f}/npm")), None)
    if folder is None:
        pytest.skip("there is no npm in a folder of its own")
    code = f"NODE_PATH={folder} node -p 'require.resolve(\"npm/package.json\")' 2> /dev/null || echo none"
    assert cloche("code", "--language", "shell", "-", stdin=code).out == "none\n"
    assert folder in cloche("code", "--language", "shell", "--with", "node-packages", "-", stdin=code).out


def test_clients_of_registries_where_there_is_a_network(cloche, host):
    """pip is there, listed as a package, and nothing can be put beside it; what else the host has is not."""
    if "pip" not in host[0]:
        pytest.skip("there is no pip")
    modules, programs, _ = look(cloche, "code", "--network", "host")
    assert "pip" in modules and set(modules) <= {"pip", "setuptools"} and programs == [], modules
    code = "python3 -m pip install --no-index --target x nothing 2>&1 | grep -q 'No matching distribution' && echo ok; touch /usr/lib/python3/dist-packages/x 2> /dev/null || echo closed"
    result = cloche("code", "--language", "shell", "--network", "host", "-", stdin=code)
    assert result.out == "ok\nclosed\n", result


def test_a_bind_into_what_is_left_out(cloche, host, project):
    place = "/usr/lib/python3/dist-packages"
    if not os.path.isdir(place):
        pytest.skip("there is no such folder")
    (project / "mine.py").write_text("print('mine')\n", encoding="ascii")
    result = cloche("code", "--language", "python", "--bind", f"{project}:{place}", "-", stdin="import mine")
    assert result.out == "mine\n", result


@pytest.mark.parametrize("flags,code", [(("--contents", "minimal", "--view", "host"), "policy.view.asks"), (("--contents", "none"), "policy.contents"),
                                        (("--contents", "minimal", "--mode", "light"), "policy.light.asks"), (("--with", "python3"), "policy.with")])
def test_refused(cloche, flags, code):
    result = cloche("run", *flags, "--", "/bin/true")
    assert result.code == 125 and f"[{code}]" in result.err, result


def test_sandboxes_of_the_daemon(cloche, host):
    daemon = Daemon(cloche)
    try:
        def execute(who, **more):
            return who.post("/v1/execute", {"language": "python", "code": LOOK, "timeout_ms": 60000, **more})
        for _ in range(2):      # the second one may have been made ahead
            assert json.loads(execute(daemon).json["stdout"])[:2] == [[], []]
        named = json.loads(execute(daemon, policy={"contents": "host"}).json["stdout"])
        assert tuple(named[:2]) == host
        agent = caller(daemon, "agent")
        for policy in ({"contents": "host"}, {"with": ["curl"]}):
            refused = execute(agent, policy=policy)
            assert refused.status in (403, 422) and refused.json["code"] == "policy.ceiling", refused
    finally:
        assert daemon.stop() == 0, daemon.log
