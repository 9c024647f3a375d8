"""The root that a sandbox of cloche has by default, taken from one, so that others can be given the same."""
import json
import os
import subprocess

LOOK = r'''
import json, os
mounts = []
with open('/proc/self/mountinfo') as f:
    for line in f:
        left, right = line.rstrip('\n').split(' - ')
        mounts.append([left.split()[4], right.split()[0]])
names = {}
for top in ('/', '/etc'):
    for name in sorted(os.listdir(top)):
        path = os.path.join(top, name)
        if os.path.islink(path):
            names[path] = ['link', os.readlink(path)]
        elif os.path.isfile(path):
            with open(path, encoding='latin-1') as f:
                names[path] = ['file', f.read()]
        else:
            names[path] = ['folder', '']
masks = {path: 'folder' if os.path.isdir(path) else 'file' for path, kind in mounts if path.startswith('/proc/')}
print(json.dumps([mounts, names, masks]))
'''


class Root:
    """@binds: folders of the host that are seen read-only at their own place. @links: {path: target}. @folders: empty
    ones. @masked_files, @masked_folders: hidden below /proc. @etc: a folder made here with what /etc has."""

    def __init__(self, cloche, place):
        done = subprocess.run([cloche, 'run', '--', '/usr/bin/python3', '-I', '-c', LOOK], capture_output=True,
                              text=True, check=True, cwd='/')
        mounts, names, masks = json.loads(done.stdout)
        self.binds = [path for path, kind in mounts if path.startswith(('/usr', '/opt', '/etc/')) and kind != 'tmpfs']
        self.links = {path: target for path, (kind, target) in names.items()
                      if kind == 'link' and os.path.dirname(path) == '/'}
        taken = {'/proc', '/dev', '/etc', *self.binds}
        self.folders = [path for path, (kind, _) in names.items()
                        if kind == 'folder' and os.path.dirname(path) == '/' and path not in taken]
        self.masked_files = [path for path, kind in masks.items() if kind == 'file']
        self.masked_folders = [path for path, kind in masks.items() if kind == 'folder' and path != '/proc/sys']
        self.etc = os.path.join(place, 'etc')
        self.empty = os.path.join(place, 'empty')
        os.mkdir(self.empty)
        os.mkdir(self.etc)
        for path, (kind, what) in names.items():
            if os.path.dirname(path) == '/etc':
                self.add(os.path.join(self.etc, os.path.basename(path)), kind, what)

    @staticmethod
    def add(path, kind, what):
        if kind == 'link':
            os.symlink(what, path)
        elif kind == 'folder':
            os.mkdir(path)
        else:
            with open(path, 'w', encoding='latin-1') as f:
                f.write(what)
