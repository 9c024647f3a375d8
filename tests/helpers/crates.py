"""A registry of crates with one crate in it, served by a site of the tests' own (R66)."""
import hashlib
import io
import json
import tarfile


def publish(pages, index, files, scheme):
    """`itoa` 1.0.0: the sparse index at @index, the files at @files."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as t:
        for file, text in (("Cargo.toml", '[package]\nname = "itoa"\nversion = "1.0.0"\n'), ("src/lib.rs", "")):
            entry = tarfile.TarInfo(f"itoa-1.0.0/{file}")
            entry.size, entry.mode = len(text), 0o644
            t.addfile(entry, io.BytesIO(text.encode()))
    crate = {"name": "itoa", "vers": "1.0.0", "deps": [], "cksum": hashlib.sha256(data.getvalue()).hexdigest(),
             "features": {}, "yanked": False}
    pages[index, "/index/config.json"] = ("application/json", json.dumps(
        {"dl": f"{scheme}://{files}/crates", "api": f"{scheme}://{index}"}).encode())
    pages[index, "/index/it/oa/itoa"] = ("text/plain", json.dumps(crate).encode() + b"\n")
    pages[files, "/crates/itoa/1.0.0/download"] = ("application/gzip", data.getvalue())
