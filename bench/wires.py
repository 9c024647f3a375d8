"""Two network namespaces for the network measurements, and what runs in them.

The *near* one is the host of the proxies, the *far* one has bench/far.c at a public address; one virtual cable joins
them, and nothing joins them to the machine's network. In the near one the name server is the far end, and its
certificate authority is among the system's. Everything that is started here ends with the bench, however that ends, and
the namespaces with it. Needs root.
"""
import contextlib
import ctypes
import os
import shutil
import signal
import subprocess

SITE, NEAR = '93.184.216.34', '93.184.216.1'
HOST, RAW = 'far.example.org', 'raw.example.org'      # the second: what is neither HTTP nor TLS
FAR_CA = 'bench far CA'
LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
CABLE_MTU = 65535               # like loopback's: the cable is not what is measured
HOLD = 'ip link set lo up; echo ready; exec sleep infinity'


def die_with_parent():
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def run(*words, **kw):
    subprocess.run(words, check=True, capture_output=True, **kw)


class Wires:
    def __init__(self, place, far):
        self.place = os.path.join(place, 'wires')
        self.far_program = far
        self.started = []
        os.mkdir(self.place)

    def start(self, words, **kw):
        process = subprocess.Popen(words, preexec_fn=die_with_parent, cwd='/', text=True, **kw)
        self.started.append(process)
        return process

    def holder(self, *flags, before=''):
        process = self.start(['unshare', '--net', *flags, '/bin/sh', '-ec', before + HOLD], stdout=subprocess.PIPE)
        if process.stdout.readline() != 'ready\n':
            raise RuntimeError('no network namespace')
        return process.pid

    def __enter__(self):
        try:
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def set_up(self):
        self.certificates()
        self.far_pid = self.holder()
        self.near_pid = self.holder('--mount', '--propagation', 'private', before=(
            f'mount --bind {self.place}/resolv.conf /etc/resolv.conf; mount --bind {self.place}/certs /etc/ssl/certs; '
            'echo 10000 65000 >/proc/sys/net/ipv4/ip_local_port_range; '))
        run(*self.near('ip', 'link', 'add', 'near', 'type', 'veth', 'peer', 'name', 'far', 'netns', str(self.far_pid)))
        for who, device, address in ((self.near, 'near', NEAR), (self.far, 'far', SITE)):
            run(*who('ip', 'addr', 'add', f'{address}/24', 'dev', device))
            run(*who('ip', 'link', 'set', device, 'mtu', str(CABLE_MTU), 'up'))
        run(*self.near('ip', 'route', 'add', 'default', 'dev', 'near'))
        server = self.start(self.far(self.far_program, SITE, f'{self.place}/site.pem', f'{self.place}/site.key'),
                            stdout=subprocess.PIPE)
        if server.stdout.readline() != 'ready\n':
            raise RuntimeError('the far end did not start')

    def certificates(self):
        """A CA, a certificate of it for HOST, a folder of trusted certificates with it, a resolv.conf."""
        key = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')
        run('openssl', 'req', '-x509', *key, '-keyout', 'ca.key', '-out', 'ca.pem', '-days', '2', '-subj',
            f'/CN={FAR_CA}', '-addext', 'basicConstraints=critical,CA:TRUE', cwd=self.place)
        run('openssl', 'req', *key, '-keyout', 'site.key', '-out', 'site.csr', '-subj', f'/CN={HOST}', cwd=self.place)
        with open(f'{self.place}/san', 'w', encoding='ascii') as f:
            f.write(f'subjectAltName=DNS:{HOST}\n')
        run('openssl', 'x509', '-req', '-in', 'site.csr', '-CA', 'ca.pem', '-CAkey', 'ca.key', '-CAcreateserial',
            '-out', 'site.pem', '-days', '2', '-extfile', 'san', cwd=self.place)
        self.ca = f'{self.place}/ca.pem'
        with open(f'{self.place}/resolv.conf', 'w', encoding='ascii') as f:
            f.write(f'nameserver {SITE}\n')
        certs = f'{self.place}/certs'
        os.mkdir(certs)
        shutil.copy(self.ca, f'{certs}/bench.pem')
        run('openssl', 'rehash', certs)
        bundle = f'{certs}/ca-certificates.crt'
        if os.path.exists('/etc/ssl/certs/ca-certificates.crt'):
            shutil.copyfile('/etc/ssl/certs/ca-certificates.crt', bundle)
        with open(bundle, 'a', encoding='ascii') as f, open(self.ca, encoding='ascii') as ca:
            f.write(ca.read())
        run('chmod', '-R', 'a+rX', self.place)

    def near(self, *words):
        return ['nsenter', '--target', str(self.near_pid), '--net', '--mount', '--', *words]

    def far(self, *words):
        return ['nsenter', '--target', str(self.far_pid), '--net', '--', *words]

    def __exit__(self, *_):
        for process in reversed(self.started):
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            process.kill()
            process.wait()
