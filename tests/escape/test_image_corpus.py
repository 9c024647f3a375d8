"""Images of attackers: each does its harm where it is unpacked by a program that trusts it, and none by cloche.

A case is a source and what its harm is; made, seen to work on the naive unpacker of helpers/images.py, then given to `cloche image
import`, which refuses it or makes a tree without that harm.
"""
import gzip
import hashlib
import json
import os
import stat
import struct
from pathlib import Path

import pytest

from helpers import images, places, requirement
from helpers.images import entry, folder, layer, link

pytestmark = requirement("R27", "R41")

CASES = {}


class Box:
    """Where a case happens: what is to be unpacked, and beside it what must stay as it is."""

    def __init__(self, top):
        self.top, self.root, self.victim = top, top / "deep" / "root", top / "deep" / "victim"
        self.victim.mkdir(parents=True, mode=0o755)
        (self.victim / "file").write_bytes(b"precious")
        self.before = self.state()

    def state(self):
        """All beside the root."""
        return {str(p.relative_to(self.top)): (oct(p.lstat().st_mode), p.lstat().st_nlink if p.is_file() else 0,
                                               p.read_bytes() if p.is_file() and not p.is_symlink() else None)
                for p in [self.victim, *sorted(self.victim.rglob("*")), *self.top.glob("*"), *self.top.glob("deep/*")] if p != self.root
                and p.name not in ("source", "scratch")}

    def changed(self):
        return self.state() != self.before


def case(name, code=None, flags=(), **more):
    """@code: of cloche's refusal; None: it takes the image, without the harm."""
    def add(make):
        CASES[name] = {"make": make, "code": code, "flags": flags, "harm": lambda box, root: box.changed(), **more}
        return make
    return add


def outside(name, code, *layers, harm=None, flags=()):
    """Layers, made for a box, that change what is beside the root."""
    case(name, code, flags, **({"harm": harm} if harm else {}))(
        lambda box: images.layout(box.top / "source", [one(box) if callable(one) else one for one in layers]).path)


# --- names that lead out
outside("parent", "image.path", layer(entry("../victim/new", b"x")))
outside("parent-behind-folders", "image.path", layer(entry("a/b/../../../victim/new", b"x")))
outside("parent-behind-dots", "image.path", layer(entry("././../victim/new", b"x")))
outside("parent-overwrites", "image.path", layer(entry("../victim/file", b"x")))
outside("parent-folder", "image.path", layer(folder("../victim/dir")))
outside("parent-folder-mode", "image.path", layer(folder("../victim", 0o777)))
outside("parent-link", "image.path", layer(link("../victim/l", "x")))
outside("absolute", None, lambda box: layer(entry(str(box.victim / "new"), b"x")))
outside("absolute-overwrites", None, lambda box: layer(entry(str(box.victim / "file"), b"x")))
outside("absolute-folder", None, lambda box: layer(folder(str(box.victim), 0o777)))
# --- links that lead out
outside("link-absolute", None, lambda box: layer(link("d", str(box.victim)), entry("d/new", b"x")))
outside("link-relative", None, layer(link("d", "../victim"), entry("d/new", b"x")))
outside("link-chain", None, layer(link("a", "../victim"), link("b", "a"), entry("b/new", b"x")))
outside("link-in-folder", None, layer(folder("x"), link("x/up", "../../victim"), entry("x/up/new", b"x")))
outside("link-to-parent", None, layer(link("up", ".."), entry("up/victim/new", b"x")))
outside("link-overwrites", None, layer(link("d", "../victim"), entry("d/file", b"x")))
outside("link-replaced-by-file", None, layer(link("f", "../victim/file"), entry("f", b"x")))
outside("link-makes-file", None, layer(link("f", "../victim/new"), entry("f", b"x")))
outside("link-folder-mode", None, layer(link("d", "../victim"), folder("d", 0o777)))
outside("link-from-lower-layer", None, layer(link("d", "../victim")), layer(entry("d/new", b"x")))
outside("link-of-lower-layer-replaced", None, layer(link("f", "../victim/file")), layer(entry("f", b"x")))
outside("link-over-folder", None, layer(folder("d"), entry("d/a")), layer(link("d", "../victim"), entry("d/new", b"x")))
outside("link-makes-folders", None, layer(link("d", "../victim"), entry("d/a/b/c", b"x")))
outside("link-makes-link", None, layer(link("d", "../victim"), link("d/l", "x")))
# --- hard links
outside("hard-parent", "image.path", layer(entry("h", "../victim/file", "hard"), entry("h", b"x")))
outside("hard-absolute", "image.path", lambda box: layer(entry("h", str(box.victim / "file"), "hard"), entry("h", b"x")))
outside("hard-through-link", "image.path", layer(link("d", "../victim"), entry("h", "d/file", "hard"), entry("h", b"x")))
outside("hard-into-outside", None, layer(entry("f", b"x"), link("d", "../victim"), entry("d/h", "f", "hard")))
outside("hard-to-link", None, layer(link("l", "../victim/file"), entry("h", "l", "hard"), entry("h", b"x")))
outside("hard-parent-place", "image.path", layer(entry("f", b"x"), entry("../victim/h", "f", "hard")))
# --- whiteouts
outside("whiteout-parent", "image.path", layer(entry("../victim/.wh.file")))
outside("whiteout-through-link", None, layer(link("d", "../victim"), entry("d/.wh.file")))
outside("whiteout-of-lower-link", None, layer(link("d", "../victim")), layer(entry("d/.wh.file")))
outside("opaque-through-link", None, layer(link("d", "../victim"), entry("d/.wh..wh..opq")))
outside("opaque-parent", "image.path", layer(entry("../victim/.wh..wh..opq")))
outside("whiteout-of-parent", "image.path", layer(folder("a"), entry("a/.wh..."), entry("x")),
        harm=lambda box, root: not (Path(root) / "a").exists())
outside("whiteout-of-itself", "image.path", layer(folder("a"), entry("a/f"), entry("a/.wh..")),
        harm=lambda box, root: not (Path(root) / "a/f").exists())
outside("whiteout-of-own-layer", None, layer(entry("keep", b"x"), entry(".wh.keep")), harm=lambda box, root: not (Path(root) / "keep").exists())


# --- what a file may be
def mode_of(path):
    return lambda box, root: (Path(root) / path).lstat().st_mode & 0o6000 != 0


def is_there(path):
    return lambda box, root: os.path.lexists(Path(root) / path)


outside("setuid", None, layer(entry("su", b"x", mode=0o4755)), harm=mode_of("su"))
outside("setgid", None, layer(entry("sg", b"x", mode=0o2755)), harm=mode_of("sg"))
outside("setgid-folder", None, layer(folder("sg", 0o2777)), harm=mode_of("sg"))
outside("fifo", None, layer(entry("p", kind="fifo")), harm=is_there("p"))
if places.IS_ROOT:
    outside("character-device", None, layer(entry("c", kind="char")), harm=is_there("c"))
    outside("block-device", None, layer(entry("b", kind="block")), harm=is_there("b"))
    outside("hard-link-to-device", "image.path", layer(entry("c", kind="char"), entry("h", "c", "hard")), harm=is_there("h"))
outside("unreadable-folder", None, layer(folder("d", 0), entry("e", b"x")), harm=lambda box, root: (Path(root) / "d").stat().st_mode & 0o700 != 0o700)


# --- too much
def sparse(size):
    """A GNU sparse file: a header that says @size, and no data."""
    head = bytearray(512)
    for at, value in ((0, b"huge"), (100, b"0000644\0"), (108, b"0000000\0"), (116, b"0000000\0"), (124, b"00000000000\0"), (136, b"00000000000\0"),
                      (156, b"S"), (257, b"ustar  \0"), (483, b"\x80" + bytes(3) + struct.pack(">Q", size))):
        head[at:at + len(value)] = value
    # one piece of no length at the end
    head[386:398] = b"\x80" + bytes(3) + struct.pack(">Q", size)
    head[398:410] = b"00000000000\0"
    head[148:156] = b"        "
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head) + bytes(1024)


def larger(path, size):
    return lambda box, root: (Path(root) / path).exists() and (Path(root) / path).stat().st_size >= size


outside("sparse", "image.limit", sparse(1 << 40), harm=larger("huge", 1 << 40), flags=("--max-size", "1g"))
outside("bomb", "image.limit", layer(entry("zeros", bytes(32 << 20))), harm=larger("zeros", 32 << 20), flags=("--max-size", "16m"))
outside("bomb-of-many", "image.limit", layer(*(entry(f"z{i}", bytes(1 << 20)) for i in range(20))), harm=larger("z19", 1 << 20), flags=("--max-size", "16m"))
outside("bomb-over-layers", "image.limit", *(layer(entry(f"z{i}", bytes(6 << 20))) for i in range(3)), harm=larger("z2", 1), flags=("--max-size", "16m"))
outside("too-many-files", "image.limit", layer(*(entry(f"f{i}") for i in range(300))), harm=is_there("f299"), flags=("--max-files", "200"))
outside("too-deep", "image.path", layer(entry("d/" * 150 + "f", b"x")), harm=is_there("d/" * 150 + "f"))
outside("too-many-layers", "image.document", *(layer(entry(f"l{i}")) for i in range(130)), harm=is_there("l129"))


# --- documents that lie
def harmful(root):
    return (Path(root) / "evil").exists()


def forged(name, code, harm=lambda box, root: harmful(root)):
    return case(name, code, harm=harm)


EVIL = layer(entry("evil", b"x"))


def overwrite(box, blob, data):
    (box.top / "source" / "blobs" / "sha256" / blob[7:]).write_bytes(data)


@forged("layer-is-another", "image.digest")
def _(box):
    made = images.layout(box.top / "source", [layer(entry("good", b"x"))])
    overwrite(box, images.digest(gzip.compress(layer(entry("good", b"x")), 1)), gzip.compress(EVIL, 1))
    return made.path


@forged("content-is-another", "image.digest")
def _(box):
    made = images.Layout(box.top / "source")
    return made.index(made.manifest([EVIL], cfg=images.config([layer(entry("good", b"x"))]))).path


@forged("configuration-is-another", "image.digest")
def _(box):
    made = images.Layout(box.top / "source")
    manifest = made.manifest([EVIL])
    overwrite(box, images.digest(json.dumps(images.config([EVIL])).encode()), json.dumps(images.config([EVIL], User="0")).encode())
    return made.index(manifest).path


@forged("manifest-is-another", "image.digest")
def _(box):
    made = images.Layout(box.top / "source")
    good, evil = made.manifest([layer(entry("good", b"x"))]), made.manifest([EVIL])
    overwrite(box, good["digest"], (made.path / "blobs/sha256" / evil["digest"][7:]).read_bytes())
    return made.index(good).path


@forged("more-layers-than-said", "image.document")
def _(box):
    made = images.Layout(box.top / "source")
    return made.index(made.manifest([layer(entry("good", b"x")), EVIL], cfg=images.config([layer(entry("good", b"x"))]))).path


@forged("garbage-behind-the-layer", "image.digest")
def _(box):
    made = images.Layout(box.top / "source")
    return made.index(made.manifest([EVIL], pack=lambda data: gzip.compress(data + bytes(512) + b"garbage", 1))).path


@forged("twice-the-same-key", "image.document")
def _(box):
    made = images.Layout(box.top / "source")
    text = json.dumps(images.config([EVIL]))
    cfg = made.blob((text[:-1] + ', "os": "linux"}').encode())
    return made.index(made.blob({"schemaVersion": 2, "config": cfg, "layers": [made.blob(EVIL)]})).path


@forged("indexes-without-end", "image.document")
def _(box):
    made = images.Layout(box.top / "source")
    one = made.manifest([EVIL])
    for _ in range(8):
        one = made.blob({"schemaVersion": 2, "manifests": [one]})
    return made.index(one).path


@forged("deep-json", "image.document")
def _(box):
    made = images.Layout(box.top / "source")
    cfg = made.blob(b'{"os": ' + b"[" * 900 + b"]" * 900 + b', "rootfs": {"diff_ids": []}, "x":' + b"[" * 5000 + b"]" * 5000 + b"}")
    return made.index(made.blob({"schemaVersion": 2, "config": cfg, "layers": [made.blob(EVIL)]})).path


def secret_of(box):
    (box.top / "secret").write_bytes(EVIL)
    box.before = box.state()


@forged("layer-blob-is-a-link-out", "image.missing")
def _(box):
    secret_of(box)
    made = images.Layout(box.top / "source")
    manifest = made.manifest([EVIL], pack=lambda data: data)
    path = made.path / "blobs/sha256" / images.digest(EVIL)[7:]
    path.unlink()
    path.symlink_to(box.top / "secret")
    return made.index(manifest).path


@forged("blobs-folder-is-a-link-out", "image.missing")
def _(box):
    made = images.Layout(box.top / "source")
    made.index(made.manifest([EVIL]))
    os.rename(made.path / "blobs", box.top / "elsewhere")
    (made.path / "blobs").symlink_to(box.top / "elsewhere")
    box.before = box.state()
    return made.path


def saved_with(box, layers, links=()):
    cfg = json.dumps(images.config([EVIL])).encode()
    name = images.digest(cfg)[7:] + ".json"
    return images.archive(box.top / "source", {name: cfg, "manifest.json": json.dumps([{"Config": name, "Layers": layers}]).encode()}, links)


HEX = hashlib.sha256(b"x").hexdigest()


@forged("archive-layer-absolute", "image.missing")
def _(box):
    secret_of(box)
    return saved_with(box, [str(box.top / "secret")])


@forged("archive-layer-parent", "image.missing")
def _(box):
    secret_of(box)
    return saved_with(box, ["../secret"])


@forged("archive-layer-is-a-link-out", "image.path")
def _(box):
    secret_of(box)
    return saved_with(box, [f"{HEX}/layer.tar"], {f"{HEX}/layer.tar": "../../secret"})


@forged("archive-layer-is-an-absolute-link", "image.path")
def _(box):
    secret_of(box)
    return saved_with(box, [f"{HEX}/layer.tar"], {f"{HEX}/layer.tar": str(box.top / "secret")})


# --------------------------------------------------------------------------------------------------------------------

def everything(path):
    return [Path(base) / name for base, folders, names in os.walk(path) for name in folders + names]


def test_there_are_enough():
    assert len(CASES) >= 60


@pytest.mark.parametrize("name", CASES)
def test_no_harm(cloche, tmp_path, name):
    one = CASES[name]
    for folder_name in ("bare", "inside"):
        (tmp_path / folder_name).mkdir()
    bare, box = Box(tmp_path / "bare"), Box(tmp_path / "inside")
    os.umask(0o022)
    try:
        images.naive(one["make"](bare), bare.root, bare.top / "scratch")
    except OSError:
        pass        # on the way, with its harm done
    assert one["harm"](bare, bare.root), "it does no harm to those who trust it: it is no attack"
    source = one["make"](box)
    result = cloche("image", "import", str(source), "case:1", *one["flags"], "--json")
    store = images.store(cloche)
    assert not os.listdir(store / "tmp") and not box.changed(), result
    if one["code"] is not None:
        assert result.code == 125 and f"[{one['code']}]" in result.err, result
        assert not os.listdir(store / "trees") and not os.listdir(store / "records"), result
        return
    assert result.ok, result
    tree = Path(json.loads(cloche("image", "inspect", "case:1", "--json").out)["path"])
    assert not one["harm"](box, tree), result
    for path in everything(tree):
        mode = path.lstat().st_mode
        assert stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode), path
        assert stat.S_ISLNK(mode) or not mode & 0o6000, path
        assert path.lstat().st_uid == os.stat(store).st_uid, path
