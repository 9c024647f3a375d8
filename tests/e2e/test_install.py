"""`make install`: what it installs works from where it is, with all that cloche starts."""
import os
from pathlib import Path

import pytest

from helpers import places, requirement
from helpers.internet import Online

pytestmark = pytest.mark.build
REPO = Path(__file__).resolve().parents[2]
VALUE = "tk_Installed-0a1B2c3D4e5F6g7H8i"


@pytest.fixture
def installed(binary, world, command):
    """The folder below which everything lies, as with --prefix."""
    build, place = places.build_folder(binary), world.root / "destination"
    if build is None:
        pytest.skip("no build folder that this user may install from")
    command(["make", "-C", REPO, f"B={build}", f"DESTDIR={place}", "install"], timeout=1800)
    (cloche,) = place.rglob("bin/cloche")
    return cloche.parent.parent


@requirement("R13", "R16")
@pytest.mark.root
def test_a_network_and_a_secret_from_the_installed_tree(installed, internet, cloche):
    cloche.binary = installed / "bin" / "cloche"
    internet.forget()
    online = Online(internet, cloche)
    done = cloche("secret", "set", "TOK", "--host", "ok.example.org", "--place", "bearer", "--env", "TOK", stdin=VALUE)
    assert done.ok, done
    script = ("curl -sS --max-time 40 http://ok.example.org/plain && "
              "curl -sS --max-time 40 -H \"Authorization: Bearer $TOK\" https://ok.example.org/mirror/plain; echo; echo $TOK")
    result = online.run(["/bin/sh", "-c", script], flags=["--secret", "TOK", "--extra-ca", internet.ca])
    placeholder = result.out.strip().rsplit("\n", 1)[-1]
    assert result.ok and result.out.startswith("hello ok.example.org /plain\n") and VALUE not in result.out, result
    assert len(placeholder) == len(VALUE) and f"Bearer {placeholder}" in result.out, result
    assert ("authorization", f"Bearer {VALUE}") in internet.requests[-1]["headers"]
    assert result.err == "", result


def test_everything_is_where_it_belongs(installed, command):
    """Programs that can be run, manuals, completions; nothing that others may write; nothing outside of the prefix."""
    names = {str(p.relative_to(installed)) for p in installed.rglob("*") if p.is_file()}
    report = command([installed / "bin" / "cloche", "doctor", "--json"], check=False).json
    programs = {"bin/cloche", *(f"libexec/cloche/{name}" for name in report["own_programs"])}
    assert programs <= names and {"libexec/cloche/cloche-webhook", "libexec/cloche/cloche-otlp"} <= programs, names
    assert (installed / "bin" / "srt").resolve() == (installed / "bin" / "cloche").resolve()
    assert any("man1/cloche-run.1" in n for n in names), names
    for path in installed.rglob("*"):
        assert path.is_symlink() or path.stat().st_mode & 0o022 == 0, path
    for name in programs:
        assert os.access(installed / name, os.X_OK), name
    assert all(Path(found["path"]).is_relative_to(installed) for found in report["own_programs"].values()), report
    top = installed
    while top.name != "destination":
        assert [p.name for p in top.parent.iterdir()] == [top.name], top
        top = top.parent
    assert command([installed / "bin" / "cloche", "--version"]).out.startswith("cloche ")
