"""Credential places are unreadable by default, even where the host's tree is shown; secrets of the caller stay out."""
import json
import os

import pytest

from helpers import requirement

pytestmark = requirement("R03", "R16")
PLACES = [".ssh/id_ed25519", ".ssh/config", ".gnupg/private-keys-v1.d/k", ".aws/credentials", ".azure/token",
          ".config/gcloud/creds.db",
          ".kube/config", ".docker/config.json", ".git-credentials", ".netrc", ".npmrc", ".vault-token",
          ".terraform.d/credentials.tfrc.json",
          ".config/op/config", ".password-store/x.gpg", ".env", ".pypirc", ".config/gh/hosts.yml"]


@pytest.fixture
def home(cloche):
    for name in PLACES:
        path = cloche.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"HUNTER2 {name}", encoding="ascii")
    return cloche.home


READ = """
import os, sys
home = sys.argv[1]; seen = []
for base, dirs, files in os.walk(home):
    for f in files:
        p = os.path.join(base, f)
        for how in (p, '/proc/self/root' + p, '/proc/self/cwd/' + os.path.relpath(p)):
            try:
                if 'HUNTER2' in open(how).read(): seen.append(os.path.relpath(p, home))
            except OSError: pass
for name in sys.argv[2:]:
    try:
        if 'HUNTER2' in open(os.path.join(home, name)).read(): seen.append(name)
    except OSError: pass
print(sorted(set(seen)))
"""


def test_the_attack_is_real(bare, home):
    assert ".ssh/id_ed25519" in bare(READ, args=[home, *PLACES]).out


def test_private_view_has_no_home_of_the_caller(cloche, home):
    assert cloche.sandbox(READ, args=[home, *PLACES]).out == "[]\n"


def test_light_mode_does_not_open_the_home(cloche, home):
    assert cloche.sandbox(READ, flags=["--mode", "light"], args=[home, *PLACES]).out == "[]\n"


def test_a_bound_home_does_not_show_them(cloche, home):
    """--bind ~ (somebody will): the credential places below it are closed; other files are not."""
    (home / "notes.txt").write_text("notes", encoding="ascii")
    result = cloche.sandbox(READ + "print(open(home + '/notes.txt').read())", flags=["--bind", f"{home}:{home}"],
                            args=[home, *PLACES])
    seen = json.loads(result.out.splitlines()[0].replace("'", '"'))
    assert seen == [] and result.out.endswith("notes\n"), result


def test_a_home_as_workspace_does_not_show_them(cloche, home):
    result = cloche.sandbox(READ.replace("home = sys.argv[1]", "home = '/workspace'"), flags=["--workspace", home],
                            args=[home, *PLACES])
    assert result.code == 125 or result.out == "[]\n", result


def test_host_view_does_not_show_them(cloche, home):
    result = cloche.sandbox(READ, flags=["--view", "host"], args=[home, *PLACES])
    assert result.out == "[]\n", result


def test_renamed_or_linked_access_in_a_bound_home(cloche, home):
    code = ("import os,sys\nh=sys.argv[1]\n"
            "for f in (lambda: os.rename(h+'/.ssh', h+'/x'), lambda: os.link(h+'/.netrc', h+'/y'), lambda: "
            "os.symlink(h+'/.ssh', h+'/z'), "
            "lambda: os.unlink(h+'/.netrc')):\n try: f()\n except OSError: pass\n"
            "for n in ('x/id_ed25519', 'y', 'z/id_ed25519', '.ssh/../.ssh/id_ed25519', './/.netrc'):\n"
            " try: print(open(h+'/'+n).read())\n except OSError: pass")
    result = cloche.sandbox(code, flags=["--bind", f"{home}:{home}:rw"], args=[home])
    assert "HUNTER2" not in result.out, result
    assert (home / ".ssh/id_ed25519").read_text().startswith("HUNTER2") and (home / ".netrc").exists()


def test_can_be_opened_by_name_when_asked(cloche, home):
    result = cloche.sandbox(READ, flags=["--bind", f"{home}:{home}", "--allow-read", f"{home}/.npmrc"],
                            args=[home, *PLACES])
    assert result.out == "['.npmrc']\n", result


def test_symlinked_credential_directory(cloche, home, world):
    """~/.aws is a link to a dotfiles repository: what it leads to is closed too, where it is shown."""
    real = home / "dotfiles/aws"
    real.mkdir(parents=True)
    (real / "credentials").write_text("HUNTER2 linked", encoding="ascii")
    (home / ".aws/credentials").unlink()
    (home / ".aws").rmdir()
    (home / ".aws").symlink_to(real)
    result = cloche.sandbox("import sys\ntry: print(open(sys.argv[1] + '/.aws/credentials').read())\nexcept OSError as "
                            "e: print('closed')",
                            flags=["--bind", f"{home}:{home}"], args=[home])
    assert "HUNTER2" not in result.out, result


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "ANTHROPIC_API_KEY", "SSH_AUTH_SOCK",
                                  "GPG_AGENT_INFO", "KUBECONFIG",
                                  "DOCKER_HOST", "NPM_TOKEN", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "PGPASSWORD"])
@pytest.mark.parametrize("mode", ["standard", "light", "max"])
def test_secrets_in_the_callers_environment_stay_out(cloche, name, mode):
    value = os.urandom(8).hex()         # no other test's, whose processes can be seen in light mode
    code = (f"import os,glob\nsecret = '{value[:8]}' + '{value[8:]}'; found = secret in str(dict(os.environ))\n"
            "for p in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline'):\n"
            " try: found = found or secret.encode() in open(p,'rb').read()\n except OSError: pass\nprint(found)")
    result = cloche.sandbox(code, flags=["--mode", mode], env={name: value})
    assert result.out == "False\n", result


def test_secrets_are_not_in_the_guests_memory(cloche):
    """The environment of cloche is not copied into PID 1, where a child might dig for it."""
    code = ("import os\nfor f in ('environ', 'mem', 'cmdline', 'auxv', 'stack'):\n"
            " try: print(f, b'HUNTER2' in open('/proc/1/' + f, 'rb').read())\n except OSError: pass")
    assert "True" not in cloche.sandbox(code, env={"TOKEN": "HUNTER2"}).out


def test_ssh_agent_socket_is_not_reachable(cloche, bait):
    code = "import socket,os,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(20))"
    result = cloche.sandbox(code, args=[bait.path], env={"SSH_AUTH_SOCK": bait.path}, flags=["--bind", str(bait.root)])
    assert not result.ok and "host service" not in result.out


def test_shadow_and_host_keys(cloche):
    result = cloche("run", "--", "sh", "-c", "cat /etc/shadow /etc/gshadow /etc/sudoers /etc/ssh/ssh_host_* "
                                             "/etc/ssl/private/* /root/.bashrc /etc/krb5.keytab 2>/dev/null; true")
    assert result.out == "", result


@pytest.mark.root
@pytest.mark.parametrize("flags", [["--view", "host", "--allow-read", "/etc/*"], ["--view", "host", "--allow-read", "/etc"],
                                   ["--bind", "/etc:/mnt/etc", "--allow-read", "/etc/*"], ["--workspace", "/etc:ro"]])
@pytest.mark.parametrize("become", [[], ["setpriv", "--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]],
                         ids=["root", "root without CAP_SYS_ADMIN"])
def test_no_rule_opens_roots_secrets(cloche, flags, become):
    """Where root shows a tree of the host, its files are the sandbox's own: these stay closed whatever is allowed."""
    result = cloche.behind(*become)("run", *flags, "--", "sh", "-c",
                                    "cat /etc/shadow /mnt/etc/shadow shadow /etc/ssl/private/* /etc/ssh/ssh_host_*key")
    assert result.code != 125 and "$" not in result.out and "PRIVATE KEY" not in result.out, result
    assert "root:" not in result.out and "denied" in result.err, result
