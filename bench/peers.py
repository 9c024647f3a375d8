"""The programs that are measured beside cloche, each set up with as equal a root as it can make."""
import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess

EQUAL = 'bubblewrap, equal filter'
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_SECCOMP_GET_FILTER = 0x4206, 0x4207, 0x420c
WALL = 0x40000000       # waitpid(2)'s __WALL
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


def bubblewrap(root):
    """The same root in the cheapest way it knows: one folder for /etc, plain directories of its own tmpfs."""
    words = []
    for source in ('/usr', '/opt'):
        words += ['--ro-bind', source, source] if source in root.binds else []
    for path, target in root.links.items():
        words += ['--symlink', target, path]
    words += ['--ro-bind', root.etc, '/etc']
    for source in root.binds:
        words += ['--ro-bind', source, source] if source.startswith('/etc/') else []
    words += ['--proc', '/proc', '--dev', '/dev']
    for path in root.masked_files:
        words += ['--ro-bind', '/dev/null', path]
    for path in root.masked_folders:
        words += ['--ro-bind', root.empty, path]
    for path in (*root.folders, '/home/agent', '/var/tmp'):
        words += ['--dir', path]
    return bwrap('bubblewrap', words)


def filter_of(pid):
    """The system call filter of a process (struct sock_filter[]), or None where that may not be read: ptrace(2)."""
    call = ctypes.CDLL(None).ptrace
    call.argtypes, call.restype = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p], ctypes.c_long
    if call(PTRACE_SEIZE, pid, None, None) < 0 or call(PTRACE_INTERRUPT, pid, None, None) < 0:
        return None
    os.waitpid(pid, WALL)
    count = call(PTRACE_SECCOMP_GET_FILTER, pid, None, None)
    program = ctypes.create_string_buffer(8 * max(count, 1))
    if count <= 0 or call(PTRACE_SECCOMP_GET_FILTER, pid, None, ctypes.cast(program, ctypes.c_void_p)) != count:
        return None
    return program.raw


def filtered_bubblewrap(cloche_path, root, place):
    """bubblewrap with the filter that a program in a sandbox of cloche has; None where that cannot be read."""
    plain = bubblewrap(root)
    if plain is None:
        return None
    with subprocess.Popen([cloche_path, 'run', '--', 'sh', '-c', 'echo up; exec sleep 60'], stdout=subprocess.PIPE) as run:
        run.stdout.readline()
        pid = run.pid
        with contextlib.suppress(OSError, IndexError):
            while True:     # down to the program itself: each of cloche's processes has one child
                with open(f'/proc/{pid}/task/{pid}/children', encoding='ascii') as f:
                    pid = int(f.read().split()[-1])
        program = filter_of(pid)
        os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, WALL)       # its tracer hears of its end first
        run.stdout.close()
    if program is None:
        return None
    path = os.path.join(place, 'filter.bpf')
    with open(path, 'wb') as f:
        f.write(program)

    def argv(command, binds=()):
        words = plain.argv(command, binds)
        return ['/bin/sh', '-c', 'exec "$@" 9<"$0"', path, words[0], '--seccomp', '9', *words[1:]]
    return Peer(EQUAL, argv, plain.version)


def small_bubblewrap():
    """What is often written by hand: no more of /etc than programs need to start."""
    words = ['--ro-bind', '/usr', '/usr']
    for name in SYSTEM_LINKS:
        words += ['--symlink', os.readlink(f'/{name}'), f'/{name}'] if os.path.islink(f'/{name}') else []
    return bwrap('bubblewrap, small root', [
        *words, '--ro-bind', '/etc/alternatives', '/etc/alternatives', '--ro-bind', '/etc/ld.so.cache',
        '/etc/ld.so.cache', '--proc', '/proc', '--dev', '/dev', '--tmpfs', '/tmp', '--tmpfs', '/home/agent',
        '--tmpfs', '/workspace'])


def bwrap(name, root):
    path = shutil.which('bwrap')
    if path is None:
        return None

    def argv(command, binds=()):
        words = [path, '--unshare-all', '--new-session', '--die-with-parent', *root, '--setenv', 'HOME', '/home/agent']
        for source, destination, writable in binds:
            words += ['--bind' if writable else '--ro-bind', source, destination]
        return [*words, '--chdir', '/workspace', '--', *command]
    return Peer(name, argv, first_line(path, '--version'))


def oci_bundle(place, runtime, root):
    """A bundle whose root is the same, /etc in the bundle itself; every namespace; no capabilities."""
    bundle = os.path.join(place, f'bundle-{runtime}')
    rootfs = os.path.join(bundle, 'rootfs')
    for path in ('/proc', '/dev', '/home/agent', '/var/tmp', *root.folders, *root.binds):
        if not path.startswith('/etc/'):
            os.makedirs(rootfs + path, exist_ok=True)
    shutil.copytree(root.etc, os.path.join(rootfs, 'etc'), symlinks=True)
    for path, target in root.links.items():
        os.symlink(target, rootfs + path)
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
            *[{'destination': path, 'type': 'bind', 'source': path, 'options': ['rbind', 'ro', 'nosuid', 'nodev']}
              for path in root.binds],
            *[{'destination': d, 'type': 'tmpfs', 'source': 'tmpfs', 'options': tmpfs}
              for d in ('/tmp', '/home/agent', '/workspace')],
        ],
        'linux': {'namespaces': [{'type': kind} for kind in ('pid', 'network', 'ipc', 'uts', 'mount', 'cgroup')],
                  'maskedPaths': [*root.masked_files, *root.masked_folders], 'readonlyPaths': ['/proc/sys']},
    }
    with open(os.path.join(bundle, 'config.json'), 'w', encoding='utf-8') as f:
        json.dump(config, f)
    return bundle


def oci(name, place, root):
    path = shutil.which(name, path=os.environ['PATH'] + ':/usr/sbin:/sbin')
    if path is None:
        return None
    bundle = oci_bundle(place, name, root)
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
