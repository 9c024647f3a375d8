"""What is written about the command line agrees with the command line."""
import re
import subprocess
import sys
from pathlib import Path

import pytest

from helpers import requirement

REPO = Path(__file__).resolve().parents[2]
MAN = REPO / "docs" / "man"
PAGES = {"diff": "cloche-diff.1", "apply": "cloche-diff.1", "discard": "cloche-diff.1"}
VERBS = ["run", "agent", "code", "shell", "diff", "apply", "discard", "policy", "why", "net", "approvals", "audit", "gate", "doctor", "image", "secret",
         "signer", "serve", "mcp", "ps", "top", "events", "logs", "watch", "exec", "ports", "attach", "console", "desktop", "kill", "token", "volume", "fork", "snapshot", "template", "config", "prove", "srt"]


def page(verb):
    return MAN / PAGES.get(verb, f"cloche-{verb}.1")


HELP = {}       # what each verb says to --help: the pages and completions of every verb are held to all of them


def help_of(cloche, verb):
    if verb not in HELP:
        result = cloche(verb, "--help")
        assert result.ok, result
        HELP[verb] = result.out
    return HELP[verb]


def flags_in_help(cloche, verb):
    # how the state came to be, or where else one would look: not a flag of this verb
    text = re.sub(r"\(cloche run [^)]*\)|cloche (?!%s\b)\w+ --\w+" % verb, "", help_of(cloche, verb))
    flags = set(re.findall(r"(?<![\w-])(--[a-z][\w-]*)", text))
    flags |= set(re.findall(r"^\s+(-\w)\b", text, flags=re.M))
    assert flags, f"{verb} --help names no flag"
    return flags


def flags_in_manual(path):
    """`.It Fl -pty , -no-pty Ar X` → --pty, --no-pty"""
    found = set()
    for line in path.read_text().splitlines():
        if re.match(r"\.(It|Op|Nm|Pf|Oo)?\s*Fl\b|.*\bFl\b", line) and line.startswith("."):
            for words in re.findall(r"Fl\s+((?:-?[\w-]+\s*,\s*)*-?[\w-]+)", line):
                found |= {"-" + word for word in re.split(r"\s*,\s*", words)}
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_flag_is_in_the_manual(cloche, verb):
    text = page(verb).read_text()
    known = flags_in_manual(page(verb))
    if ".Xr cloche-run 1" in text:      # the policy's flags are described once
        known |= flags_in_manual(MAN / "cloche-run.1")
    missing = sorted(flags_in_help(cloche, verb) - known - {"--help"})
    assert not missing, f"{page(verb).name} says nothing about {missing}"


@pytest.mark.parametrize("verb", VERBS)
def test_the_manual_invents_no_flag(cloche, verb):
    known = set()
    for other in VERBS:     # a page may speak of another verb's flag
        known |= flags_in_help(cloche, other)
    known |= {"-q", "-h", "--help", "-"}
    invented = sorted(flags_in_manual(page(verb)) - known)
    if verb == "srt":
        invented = [flag for flag in invented if flag not in ("-dhV", "--")]
    assert not [flag for flag in invented if flag != "--"], invented


def test_every_key_of_settings_is_described():
    """In the manual, the page and the schema that editors read."""
    rows = re.findall(r'KEY\("([a-z.-]+)",(.*?)(?=\n    \{ KEY|\n\};)', (REPO / "src/policy/spec.c").read_text(), flags=re.S)
    own = {key.split(".")[-1] for key, row in rows if ".no_file" not in row}
    assert len(own) > 40 and "extra-ca" in own, own
    manual, policy = (MAN / "cloche-policy.5").read_text(), (REPO / "docs/policy.md").read_text()
    schema = (REPO / "docs/schema/policy.schema.json").read_text()
    missing = [(key, where) for key in sorted(own) for where, there in
               (("cloche-policy.5", re.search(rf"^\.(It )?Va (.*[ .])?{key}( |$)", manual, flags=re.M)),
                ("policy.md", key in policy), ("policy.schema.json", f'"{key}":' in schema)) if not there]
    assert not missing, missing


def test_what_is_written_from_the_table_of_keys_is_up_to_date(binary):
    keys = binary.parent.parent / "policy" / "policy_keys"
    if not keys.exists():
        pytest.skip("this cloche is not in a folder that it was built in: nothing there prints the table of keys")
    done = subprocess.run([sys.executable, "-B", REPO / "tools" / "gen_policy.py", "--check", keys], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr + "\nwrite them: tools/gen_policy.py PATH-OF-POLICY_KEYS"


def test_the_first_page_names_every_verb(cloche):
    text = (MAN / "cloche.1").read_text()
    listed = re.findall(r"^  ([a-z]+)   +\S", cloche("--help").out, flags=re.M)
    assert set(VERBS) == set(listed) - {"help", "version"}      # each is looked at here
    for verb in listed:
        assert re.search(rf"\b{verb}\b", text), verb


def test_every_manual_is_installed():
    listed = (MAN / "meson.build").read_text()
    pages = sorted(p.name for p in MAN.glob("*.[1-9]"))
    assert pages
    assert [name for name in pages if f"'{name}'" not in listed] == []


def test_every_manual_renders(has, command):
    has("mandoc")
    for path in sorted(MAN.glob("*.[1-9]")):
        result = command(["mandoc", "-T", "utf8", "-W", "warning,stop", str(path)])
        assert len(result.out.splitlines()) > 20, path


def test_completions_are_up_to_date(cloche, binary):
    done = subprocess.run([sys.executable, "-B", REPO / "tools" / "gen_completions.py", "--check", binary],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr + "\nwrite them: tools/gen_completions.py PATH-OF-CLOCHE"


@pytest.mark.parametrize("verb", VERBS)
def test_completions_mention_every_flag(cloche, verb):
    flags = flags_in_help(cloche, verb)
    for name, mention in (("cloche.bash", "{}"), ("_cloche", "'*{}["), ("cloche.fish", None)):
        text = (REPO / "completions" / name).read_text()
        for flag in flags:
            if mention:
                assert mention.format(flag) in text, f"{name}: {flag}"
            else:
                word = f"-l {flag[2:]} " if flag.startswith("--") else f"-s {flag[1:]} "
                assert re.search(rf"seen_subcommand_from {verb}' .*{re.escape(word)}", text), f"{name}: {verb} {flag}"


@pytest.mark.parametrize("words, want", [
    (["cloche", "ru"], {"run"}),
    (["cloche", "run", "--mo"], {"--mode"}),
    (["cloche", "run", "--mode", "s"], {"standard"}),
    (["cloche", "policy", ""], {"check", "show"}),
    (["cloche", "why", "--op", ""], {"read", "write", "exec"}),
    (["cloche", "run", "--", "mktem"], {"mktemp"}),
])
def test_bash_completes(command, words, want):
    quoted = " ".join(f"'{word}'" for word in words)
    script = (f"source {REPO}/completions/cloche.bash; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _cloche; "
              "printf '%s\\n' \"${COMPREPLY[@]}\"")
    result = command(["bash", "-c", script])
    assert want <= set(result.out.split()), result


@pytest.mark.parametrize("shell, name", [("zsh", "_cloche"), ("fish", "cloche.fish"), ("bash", "cloche.bash")])
def test_completions_parse(has, command, shell, name):
    has(shell)
    assert command([shell, "-n", str(REPO / "completions" / name)]).ok


def readme_commands():
    text = (REPO / "README.md").read_text() + (REPO / "docs" / "getting-started.md").read_text()
    blocks = re.findall(r"^```\n(.*?)^```", text, flags=re.M | re.S)
    return sorted(set(re.findall(r"^\$? ?cloche (\w+) ?(.*)$", "\n".join(blocks), flags=re.M)))


def test_commands_in_the_readme_use_flags_that_exist(cloche):
    commands = readme_commands()
    assert len(commands) >= 8
    for verb, rest in commands:
        assert verb in VERBS + ["version", "help"], verb
        own = rest.split(" -- ")[0].split("#")[0]
        known = flags_in_help(cloche, verb) | (flags_in_help(cloche, "run") if verb in ("why", "prove") else set())
        assert set(re.findall(r"(?<!\S)(--[a-z][\w-]*)", own)) <= known, f"cloche {verb} {rest}"


@requirement("R64")
def test_languages_are_written_down(cloche):
    """src/match/language.h has them; what is generated from it needs no look."""
    names = re.search(r"--language ([a-z|]+)", help_of(cloche, "code"))[1].split("|")
    assert len(names) >= 3
    assert " | ".join(names) in page("code").read_text()
    listed = ", ".join(f"`{name}`" for name in names)
    for where in ("doctor.md", "mcp.md"):
        assert listed in (REPO / "docs" / where).read_text(), where


@requirement("R97")
def test_hosts_without_cloche_are_named_with_what_to_use_there():
    text = (REPO / "docs" / "platforms.md").read_text()
    rows = [line.strip("| ").split(" | ") for line in text.split("## Where it cannot run")[1].splitlines() if line.startswith("|")][2:]
    assert all(len(row) == 3 and len(row[2]) > 10 for row in rows), rows
    named = " ".join(row[0] for row in rows)
    assert not [host for host in ("macOS", "Windows", "iPhone", "Android", "store") if host not in named]
    assert "platforms.md" in (REPO / "README.md").read_text() and "platforms.md" in (REPO / "docs" / "index.md").read_text()


@requirement("R99")
def test_every_mechanism_of_the_threat_model_names_a_test_that_is_there():
    text = (REPO / "docs" / "security.md").read_text()
    table = text.split("## The mechanisms, and what each stops")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 40 and "## Not promised" in text
    there = {path.name for path in (REPO / "tests").rglob("test_*")}
    for row in rows:
        assert re.search(r"test_\w+|`cloche prove`|fuzz/", row[-1]), f"no test: {row[0]}"
    named = set(re.findall(r"\b(test_\w+\.(?:py|c))\b", text))
    assert named and not named - there, named - there
