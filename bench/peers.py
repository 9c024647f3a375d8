"""The programs that are measured beside cloche, each set up with as equal a root as it can make."""
import json
import os
import shutil
import subprocess

SYSTEM_LINKS = ('bin', 'sbin', 'lib', 'lib64')


class Peer:
    """One row: @argv(command, binds) gives the words that run @command; binds are (source, destination, writable)."""

    def __init__(self, name, argv, version, *, slow=False, note='', before=()):
        self.name = name
        self.before = list(before)      # words that prepare the surroundings once for a whole round
        self.argv = argv
        self.version = version
        self.slow = slow        # fewer rounds: a start takes tens or hundreds of milliseconds
        self.note = note


def first_line(*argv):
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    return (done.stdout or done.stderr).strip().split('\n')[0]


def bare():
    return Peer('bare posix_spawn', lambda command, binds=(): list(command), 'no isolation')


def cloche(path, flags=(), name='cloche'):
    def argv(command, binds=()):
        words = [path, 'run', *flags]
        for source, destination, writable in binds:
            if destination == '/workspace':
                words += ['--workspace', f'{source}:{"rw" if writable else "ro"}']
            else:
                words += ['--bind', f'{source}:{destination}:{"rw" if writable else "ro"}']
        return [*words, '--', *command]
    return Peer(name, argv, first_line(path, 'version'))


def bubblewrap():
    path = shutil.which('bwrap')
    if path is None:
        return None
    links = [word for name in SYSTEM_LINKS if os.path.islink(f'/{name}')
             for word in ('--symlink', os.readlink(f'/{name}'), f'/{name}')]

    def argv(command, binds=()):
        words = [path, '--unshare-all', '--new-session', '--die-with-parent', '--ro-bind', '/usr', '/usr', *links,
                 '--ro-bind', '/etc/alternatives', '/etc/alternatives',
                 '--ro-bind', '/etc/ld.so.cache', '/etc/ld.so.cache',
                 '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/home/agent',
                 '--setenv', 'HOME', '/home/agent']
        if not any(destination == '/workspace' for _, destination, _ in binds):
            words += ['--tmpfs', '/workspace']
        for source, destination, writable in binds:
            words += ['--bind' if writable else '--ro-bind', source, destination]
        return [*words, '--chdir', '/workspace', '--', *command]
    return Peer('bubblewrap', argv, first_line(path, '--version'))


def oci_bundle(place, runtime):
    """A bundle whose root is the same: read-only /usr, /proc, /dev, tmpfs; every namespace; no capabilities."""
    bundle = os.path.join(place, f'bundle-{runtime}')
    rootfs = os.path.join(bundle, 'rootfs')
    for name in ('usr', 'proc', 'dev', 'tmp', 'workspace', 'home/agent', 'etc'):
        os.makedirs(os.path.join(rootfs, name))
    for name in SYSTEM_LINKS:
        if os.path.islink(f'/{name}'):
            os.symlink(os.readlink(f'/{name}'), os.path.join(rootfs, name))
    tmpfs = ['nosuid', 'nodev', 'mode=755']
    config = {
        'ociVersion': '1.0.2',
        'root': {'path': 'rootfs', 'readonly': True},
        'process': {
            'terminal': False, 'user': {'uid': 0, 'gid': 0}, 'cwd': '/workspace', 'noNewPrivileges': True,
            'args': ['/bin/true'], 'env': ['PATH=/usr/bin:/bin', 'HOME=/home/agent'],
            'capabilities': {kind: [] for kind in ('bounding', 'effective', 'permitted')},
        },
        'mounts': [
            {'destination': '/proc', 'type': 'proc', 'source': 'proc'},
            {'destination': '/dev', 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['nosuid', 'mode=755']},
            {'destination': '/dev/pts', 'type': 'devpts', 'source': 'devpts',
             'options': ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620']},
            {'destination': '/usr', 'type': 'bind', 'source': '/usr', 'options': ['rbind', 'ro', 'nosuid', 'nodev']},
            *[{'destination': d, 'type': 'tmpfs', 'source': 'tmpfs', 'options': tmpfs}
              for d in ('/tmp', '/home/agent', '/workspace')],
        ],
        'linux': {'namespaces': [{'type': kind} for kind in ('pid', 'network', 'ipc', 'uts', 'mount', 'cgroup')],
                  'maskedPaths': ['/proc/kcore', '/proc/keys'], 'readonlyPaths': ['/proc/sys']},
    }
    with open(os.path.join(bundle, 'config.json'), 'w', encoding='utf-8') as f:
        json.dump(config, f)
    return bundle


def oci(name, place):
    path = shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/sbin')
    if path is None:
        return None
    bundle = oci_bundle(place, name)
    words = [path, '--root', os.path.join(place, f'state-{name}'), 'run', '--bundle', bundle, 'bench-%N']
    before, note = [], ''
    if name == 'crun' and os.path.isdir('/sys/fs/cgroup/unified'):
        # crun refuses the hybrid layout: let it see the v2 hierarchy alone, in a mount namespace of the round.
        before = ['unshare', '--mount', 'sh', '-c', 'mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec "$@"', 'sh']
        note = 'cgroup v2 shown to it alone'
    return Peer(name, lambda command, binds=(): words, first_line(path, '--version'), slow=name == 'runc', note=note,
                before=before)


def firejail(*flags):
    path = shutil.which('firejail')
    if path is None:
        return None
    label = 'firejail ' + ' '.join(flags) if flags else 'firejail (default profile)'
    return Peer(label, lambda command, binds=(): [path, '--quiet', *flags, '--', *command],
                first_line(path, '--version'), slow=True)


def srt(place, prefix=None):
    """The npm package, installed into a temporary prefix unless @prefix has it already."""
    if shutil.which('npm') is None or any(shutil.which(tool) is None for tool in ('bwrap', 'socat', 'rg')):
        return None
    if prefix is None:
        prefix = os.path.join(place, 'npm')
        done = subprocess.run(['npm', 'install', '--silent', '--no-fund', '--no-audit', '--prefix', prefix,
                               '@anthropic-ai/sandbox-runtime'], capture_output=True, check=False)
        if done.returncode != 0:
            return None
    package = os.path.join(prefix, 'node_modules/@anthropic-ai/sandbox-runtime/package.json')
    with open(package, encoding='utf-8') as f:
        version = json.load(f)['version']
    settings = os.path.join(place, 'srt.json')
    with open(settings, 'w', encoding='utf-8') as f:
        json.dump({'network': {'allowedDomains': [], 'deniedDomains': []},
                   'filesystem': {'denyRead': [], 'allowWrite': ['/tmp'], 'denyWrite': []}}, f)
    binary = os.path.join(prefix, 'node_modules/.bin/srt')
    return Peer('srt (npm)', lambda command, binds=(): [binary, '--settings', settings, '--', *command],
                f'@anthropic-ai/sandbox-runtime {version}', slow=True)
