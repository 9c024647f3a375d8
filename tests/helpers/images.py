"""Images made by hand: layers as tars, OCI layouts, `docker save` archives; and an unpacker that trusts them."""
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

KINDS = {"dir": tarfile.DIRTYPE, "link": tarfile.SYMTYPE, "hard": tarfile.LNKTYPE, "char": tarfile.CHRTYPE, "block": tarfile.BLKTYPE,
         "fifo": tarfile.FIFOTYPE}


def entry(name, data=b"", kind="file", mode=0o644, **more):
    """One member of a layer. @data: the bytes of a file, the target of a link."""
    return {"name": name, "data": data, "kind": kind, "mode": mode, **more}


def link(name, to):
    return entry(name, to, "link")


def folder(name, mode=0o755):
    return entry(name, kind="dir", mode=mode)


def layer(*entries):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for e in entries:
            info = tarfile.TarInfo(e["name"])
            info.mode = e["mode"]
            info.pax_headers = e.get("pax", {})
            if e["kind"] == "file":
                info.size = len(e["data"])
                tar.addfile(info, io.BytesIO(e["data"]))
            else:
                info.type = KINDS[e["kind"]]
                info.linkname = e["data"] or ""
                info.devmajor, info.devminor = 1, 3
                tar.addfile(info)
    return out.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def config(layers, architecture=None, **said):
    return {"os": "linux", "architecture": architecture or {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine], "config": said,
            "rootfs": {"type": "layers", "diff_ids": [digest(data) for data in layers]}}


class Layout:
    """An OCI layout in a folder. Documents are bytes or what becomes JSON."""

    def __init__(self, path):
        self.path = Path(path)
        (self.path / "blobs" / "sha256").mkdir(parents=True)
        (self.path / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, data, media=None):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        (self.path / "blobs" / "sha256" / digest(data)[7:]).write_bytes(data)
        return {"digest": digest(data), "size": len(data), **({"mediaType": media} if media else {})}

    def manifest(self, layers, cfg=None, pack=lambda data: gzip.compress(data, 1), **said):
        return self.blob({"schemaVersion": 2, "config": self.blob(cfg or config(layers, **said)),
                          "layers": [self.blob(pack(data)) for data in layers]})

    def index(self, *manifests):
        (self.path / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": list(manifests)}))
        return self

    def tar(self, to):
        with tarfile.open(to, "w") as tar:
            tar.add(self.path, ".")
        return to


def layout(path, layers, name=None, **said):
    out = Layout(path)
    manifest = out.manifest(layers, **said)
    if name:
        manifest["annotations"] = {"org.opencontainers.image.ref.name": name}
    return out.index(manifest)


def archive(to, files, links=()):
    """A tar of @files {name: bytes} and @links {name: target}."""
    with tarfile.open(to, "w") as tar:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, target in dict(links).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return to


def saved(to, layers, tags=(), **said):
    """As `docker save` writes it."""
    cfg = json.dumps(config(layers, **said)).encode()
    name = digest(cfg)[7:] + ".json"
    files = {f"{digest(data)[7:]}/layer.tar": data for data in layers}
    manifest = [{"Config": name, "RepoTags": list(tags), "Layers": list(files)}]
    return archive(to, {**files, name: cfg, "manifest.json": json.dumps(manifest).encode()})


# --- as a program unpacks that trusts what it is given ---------------------------------------------------------------

def naive_layer(data, root):
    """Each member at the path that its name says, by names, links followed: what attacks are for."""
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            path = os.path.join(root, info.name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            base = os.path.basename(path)
            if base == ".wh..wh..opq":
                for name in os.listdir(os.path.dirname(path)):
                    naive_remove(os.path.join(os.path.dirname(path), name))
            elif base.startswith(".wh."):
                naive_remove(os.path.join(os.path.dirname(path), base[4:]))
            elif info.isdir():
                os.makedirs(path, exist_ok=True)
                os.chmod(path, info.mode)
            elif info.issym():
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                if os.path.lexists(path):
                    os.unlink(path)
                os.symlink(info.linkname, path)
            elif info.islnk():
                os.link(os.path.join(root, info.linkname), path)
            elif info.ischr() or info.isblk() or info.isfifo():
                os.mknod(path, info.mode | {tarfile.CHRTYPE: 0o020000, tarfile.BLKTYPE: 0o060000, tarfile.FIFOTYPE: 0o010000}[info.type],
                         os.makedev(info.devmajor, info.devminor))
            else:
                with open(path, "wb") as f:
                    f.truncate(info.size)
                    if info.size < 1 << 30:
                        f.write(tar.extractfile(info).read())
                os.chmod(path, info.mode)


def naive_remove(path):
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def naive_read(top, name):
    """A file of an archive's or layout's, by its name."""
    return (Path(top) / name).read_bytes()


def naive(source, root, scratch):
    """All of it: no digest compared, no size, no kind; what the documents name is opened."""
    os.makedirs(root, exist_ok=True)
    if os.path.isfile(source):
        naive_layer(Path(source).read_bytes(), scratch)
        source = scratch
    if not os.path.exists(os.path.join(source, "index.json")):
        manifest = json.loads(naive_read(source, "manifest.json"))[0]
        naive_read(source, manifest["Config"])
        blobs = [naive_read(source, name) for name in manifest["Layers"]]
    else:
        document = json.loads(naive_read(source, "index.json"))
        while "manifests" in document:
            document = json.loads(naive_read(source, "blobs/sha256/" + document["manifests"][0]["digest"][7:]))
        naive_read(source, "blobs/sha256/" + document["config"]["digest"][7:])
        blobs = [naive_read(source, "blobs/sha256/" + one["digest"][7:]) for one in document["layers"]]
    for blob in blobs:
        naive_layer(gzip.decompress(blob) if blob[:2] == b"\x1f\x8b" else blob, root)


# --- a system that runs ----------------------------------------------------------------------------------------------

def parts_of(program):
    """The program's file and those of its libraries, as they are found on this host."""
    found = [os.path.realpath(shutil.which(program))]
    listed = subprocess.run(["ldd", found[0]], capture_output=True, text=True, check=False).stdout
    return found, [word for word in listed.split() if word.startswith("/")]


def system(*programs, bin="bin", extra=()):
    """A layer with programs of this host, which has no links: `bin` and the folders of libraries are its own."""
    entries, seen = [], set()
    for program in programs:
        (real,), libraries = parts_of(program)
        for path, name in [(real, f"{bin}/{program}"), *((library, library.lstrip("/")) for library in libraries)]:
            if name not in seen:
                seen.add(name)
                entries.append(entry(name, Path(path).read_bytes(), mode=0o755))
    return layer(*entries, *extra)


def store(cloche):
    return Path(cloche.state) / "cloche" / "images"
