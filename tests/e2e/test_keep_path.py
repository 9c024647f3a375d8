"""--keep-path: the project lies inside where it lies outside, with everything that a workspace at /workspace has."""
import os
import shutil
import subprocess

import pytest

from helpers import requirement

pytestmark = requirement("R11")

KEPT = ("--workspace", ".", "--keep-path")
HOOK = "mkdir -p .git/objects .git/refs .git/hooks; echo 'ref: refs/heads/main' > .git/HEAD; echo x > .git/hooks/pre-commit"


def kept(cloche, command, *flags, verb="run", **options):
    return cloche(verb, *KEPT, *flags, "--", "sh", "-c", command, cwd=options.pop("cwd", cloche.project), **options)


# where it is ---------------------------------------------------------------------------------------------------
def test_it_keeps_its_path(anyone):
    result = kept(anyone, "pwd; pwd -P; touch made; ls -d /workspace")
    assert result.out == f"{anyone.project}\n" * 2 and "/workspace" in result.err, result
    assert (anyone.project / "made").exists()


def test_shell_and_code(cloche):
    (cloche.project / "x.py").write_text("import os; print(os.getcwd(), os.listdir())\n")
    result = cloche("code", *KEPT, "--language", "python", "x.py", cwd=cloche.project)
    assert result.out == f"{cloche.project} ['x.py']\n", result
    result = cloche("shell", *KEPT, "--no-pty", cwd=cloche.project, stdin="pwd\n")
    assert result.out == f"{cloche.project}\n", result


def test_in_a_settings_file(cloche):
    settings = cloche.project.parent / "s.yaml"
    settings.write_text("workspace: .\nkeep-path: true\n")
    result = cloche("run", "--settings", settings, "--", "pwd", cwd=cloche.project)
    assert result.out == f"{cloche.project}\n", result
    assert f'"{cloche.project}"' in cloche("policy", "show", "--settings", settings, "--json", cwd=cloche.project).out


@pytest.mark.parametrize("name", ["a b", "a:rw", "new\nline", "$HOME", "\u202ename", "-x", "%s%n"])
def test_odd_names(cloche, name):
    folder = cloche.project / name
    folder.mkdir()
    shutil.copymode(cloche.project, folder)
    result = kept(cloche, "pwd; touch made; echo x > .envrc", cwd=folder)
    assert result.out == f"{folder}\n" and (folder / "made").exists() and not (folder / ".envrc").exists(), result


def test_a_long_path(cloche):
    folder = cloche.project
    while len(str(folder)) < 3700:
        folder = folder / ("d" * 200)
    folder.mkdir(parents=True)
    result = kept(cloche, "pwd; touch made", cwd=folder)
    assert result.out == f"{folder}\n" and (folder / "made").exists(), result


def test_a_link_is_kept_by_its_name(cloche):
    real, link = cloche.project / "real", cloche.project / "link"
    real.mkdir()
    link.symlink_to("real")
    result = cloche("run", "--workspace", link, "--keep-path", "--", "sh", "-c", "pwd; touch made; echo x > .envrc")
    assert result.out == f"{link}\n" and sorted(os.listdir(real)) == ["made"], result


def test_in_the_hosts_tree_it_is_so_anyway(cloche):
    assert kept(cloche, "pwd", "--view", "host").out == f"{cloche.project}\n"


@requirement("R40")
def test_in_light_mode_it_is_so_anyway(in_mode):
    assert kept(in_mode("light"), "pwd", "--mode", "light").out.endswith("/project\n")


# names of the other place ----------------------------------------------------------------------------------------
def test_rules_that_say_workspace_mean_it(cloche):
    """A settings file that was written for /workspace closes what it closed there, and opens nothing beside it."""
    (cloche.project / "closed").write_text("secret\n")
    (cloche.project / "vendor").mkdir()
    (cloche.project / "data").mkdir()
    beside = cloche.project.parent / "beside"
    beside.mkdir()
    (beside / "here").touch()
    result = kept(cloche, "pwd; cat ../closed; touch a; ls ../data; ls /workspace", "--deny-read", "/workspace/closed", "--deny-write",
                  "/workspace/vendor", "--workdir", "/workspace/vendor", "--bind", f"{beside}:/workspace/data")
    assert result.out == f"{cloche.project}/vendor\nhere\n" and "secret" not in result.out, result
    assert os.listdir(cloche.project / "vendor") == [] and "/workspace" in result.err, result
    assert kept(cloche, "pwd", "--workdir", "vendor").out == f"{cloche.project}/vendor\n"


@pytest.mark.parametrize("name", ["[ab]", "x*y", "a\\b", "~x"])
def test_a_pattern_below_a_name_that_looks_like_one(cloche, name):
    """The project's own name is no part of it: the rule closed nothing in a project called "[ab]"."""
    folder = cloche.project / name
    folder.mkdir()
    shutil.copymode(cloche.project, folder)
    (folder / "x.key").write_text("secret\n")
    result = kept(cloche, "pwd; cat x.key", "--deny-read", "/workspace/*.key", cwd=folder)
    assert result.out == f"{folder}\n", result


def test_a_rule_that_becomes_too_long(cloche):
    folder = cloche.project / ("d" * 200)
    folder.mkdir()
    result = kept(cloche, "true", "--deny-read", "/workspace" + "/a" * 1980, cwd=folder)
    assert result.code == 125 and "policy.path" in result.err, result


def test_why_and_policy_show(cloche):
    def why(*words):
        return cloche("why", *KEPT, *words, "--json", cwd=cloche.project).json

    assert why("--path", f"{cloche.project}/x", "--op", "write")["verdict"] == "allowed"
    denied = why("--path", f"{cloche.project}/.git/hooks/x", "--op", "write")
    assert denied["verdict"] == "denied" and denied["reason"] == "protected-name", denied
    assert why("--path", "/workspace/x", "--op", "write")["verdict"] == "denied"


# all kinds, and what follows a run --------------------------------------------------------------------------------
def test_read_only(cloche):
    result = cloche("run", "--workspace", ".:ro", "--keep-path", "--", "sh", "-c", "pwd; touch x", cwd=cloche.project)
    assert result.out == f"{cloche.project}\n" and os.listdir(cloche.project) == []


@requirement("R82")
def test_a_copy_its_diff_and_apply(anyone):
    (anyone.project / "given").write_text("old\n")
    if anyone.person is not None:
        os.chown(anyone.project / "given", anyone.person.pw_uid, anyone.person.pw_gid)
    result = anyone("run", "--workspace", ".:cow", "--keep-path", "--json", "--", "sh", "-c",
                    "pwd; echo new > given; echo x > .envrc; " + HOOK, cwd=anyone.project)
    assert result.json["stdout"] == f"{anyone.project}\n", result
    assert (anyone.project / "given").read_text() == "old\n"
    run = result.json["workspace"]["id"]
    assert "+new" in anyone("diff", run, cwd=anyone.project).out
    assert anyone("apply", run, cwd=anyone.project).code == 2
    assert (anyone.project / "given").read_text() == "new\n"
    assert not (anyone.project / ".envrc").exists() and not (anyone.project / ".git/hooks/pre-commit").exists()
    anyone("discard", run, cwd=anyone.project)


@requirement("R82")
def test_what_was_planted_is_named(cloche):
    result = kept(cloche, "mkdir -p sub; echo 'x' > sub/.envrc", cwd=cloche.project)
    assert "sub/.envrc" in result.err, result
    assert cloche("why", "--planted", cloche.project).code == 1


@requirement("R01")
def test_a_venv_and_absolute_paths_stay_right(cloche, has):
    """The reason for it: what has the project's path in it works on both sides."""
    has("python3")
    assert kept(cloche, "python3 -m venv --without-pip env && env/bin/python -c 'import sys; print(sys.prefix)'").out == \
        f"{cloche.project}/env\n"
    out = subprocess.run([cloche.project / "env/bin/python", "-c", "import sys; print(sys.prefix)"], text=True,
                         stdout=subprocess.PIPE, check=True).stdout
    assert out == f"{cloche.project}/env\n"


# refused ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("folder,flags,code", [
    ("/usr/share/doc", ":ro", "policy.keep-path.reserved"), ("/etc/ssl", ":cow", "policy.keep-path.reserved"),
    ("/usr/lib", ":cow", "policy.keep-path.reserved"), ("/etc", "", "policy.workspace.system"),
    ("/home", ":ro", "policy.keep-path.reserved"), ("/tmp", ":cow", "policy.keep-path.reserved"),
    ("/var", ":ro", "policy.keep-path.reserved"), ("/var/tmp", ":rw", "policy.keep-path.reserved"),
    ("/opt", ":ro", "policy.keep-path.reserved"), ("/home/agent", ":ro", "policy.keep-path.reserved"),
    ("/run/user", ":ro", "policy.keep-path.reserved"), ("/var/lib", ":ro", "policy.keep-path.reserved"),
    ("/", ":ro", "policy.workspace.system"), ("/proc/self", ":ro", "policy.workspace.system"),
    ("/dev/shm", ":ro", "policy.workspace.system"), ("/workspace", ":ro", "policy.keep-path.reserved"),
])
def test_what_the_root_needs_is_not_hidden(cloche, folder, flags, code):
    result = cloche("run", "--workspace", folder + flags, "--keep-path", "--", "true")
    assert result.code == 125 and code in result.err, result


def test_without_a_workspace(cloche):
    result = cloche("run", "--keep-path", "--", "true")
    assert result.code == 125 and "policy.keep-path.workspace" in result.err and "--workspace ." in result.err


def test_a_bind_in_its_place(cloche):
    result = kept(cloche, "true", "--bind", f"{cloche.project}:rw")
    assert result.code == 125 and "policy.bind.twice" in result.err, result


def test_the_daemon_has_none(cloche):
    config = cloche.project / "serve.yaml"
    (cloche.project / "s.yaml").write_text("workspace: /srv\nkeep-path: true\n")
    config.write_text(f"settings: {cloche.project}/s.yaml\n")
    result = cloche("config", "check", config)
    assert result.code == 125 and "policy.keep-path.daemon" in result.err, result
