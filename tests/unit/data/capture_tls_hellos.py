#!/usr/bin/python3
"""Record the ClientHellos that real programs send, as a C header for test_tls_hello.c.

    tests/unit/data/capture_tls_hellos.py > tests/unit/data/tls_hello_captures.h

Every client connects to a listener on the loopback address, sends its hello and is hung up on. Clients that are not
installed are left out with a note. Nothing leaves the machine.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

NAME = 'capture.example.org'

GO = r'''
package main
import ("crypto/ecdh"; "crypto/rand"; "crypto/tls"; "net"; "os")
func main() {
    cfg := &tls.Config{ServerName: "inner.example.org", NextProtos: []string{"h2", "http/1.1"}}
    if len(os.Args) > 2 {
        key, _ := ecdh.X25519().GenerateKey(rand.Reader)
        pub := key.PublicKey().Bytes()
        name := "capture.example.org"
        c := []byte{7, 0, 0x20, 0, byte(len(pub))}
        c = append(c, pub...)
        c = append(c, 0, 4, 0, 1, 0, 1, 32, byte(len(name)))
        c = append(append(c, name...), 0, 0)
        list := append([]byte{0xfe, 0x0d, 0, byte(len(c))}, c...)
        cfg.EncryptedClientHelloConfigList = append([]byte{0, byte(len(list))}, list...)
        cfg.MinVersion = tls.VersionTLS13
    } else {
        cfg.ServerName = "capture.example.org"
    }
    conn, err := net.Dial("tcp", os.Args[1])
    if err != nil { panic(err) }
    tls.Client(conn, cfg).Handshake()
}
'''

NODE = '''
const tls = require('tls');
const s = tls.connect({host: '127.0.0.1', port: PORT, servername: '%s', ALPNProtocols: ['http/1.1'],
                       rejectUnauthorized: false}, () => s.end());
s.on('error', () => {});
''' % NAME

PYTHON = '''
import socket, ssl
c = ssl.create_default_context()
try:
    c.wrap_socket(socket.create_connection(('127.0.0.1', PORT)), server_hostname='%s')
except OSError:
    pass
''' % NAME


def message(data):
    """The bytes up to the end of the first handshake message, or None while it is incomplete."""
    at, got, want = 0, b'', None
    while at + 5 <= len(data):
        n = int.from_bytes(data[at + 3:at + 5], 'big')
        if data[at] != 22 or len(data) < at + 5 + n:
            return None
        got += data[at + 5:at + 5 + n]
        at += 5 + n
        if len(got) >= 4:
            want = 4 + int.from_bytes(got[1:4], 'big')
            if len(got) >= want:
                return data[:at]
    return None


def record(command):
    """What @command(port) sends first."""
    data = b''
    with socket.create_server(('127.0.0.1', 0)) as server:
        server.settimeout(20)
        child = subprocess.Popen(command(server.getsockname()[1]), stdin=subprocess.PIPE,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            peer, _ = server.accept()
            with peer:
                peer.settimeout(20)
                while message(data) is None:
                    more = peer.recv(65536)
                    if not more:
                        return None
                    data += more
        except TimeoutError:
            return None
        finally:
            child.stdin.close()
            child.terminate()
            child.wait()
    return message(data)


def session(folder):
    """A session ticket that permits early data, from openssl's own server."""
    cert, key, ticket = (os.path.join(folder, name) for name in ('cert', 'key', 'ticket'))
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-subj',
                    '/CN=' + NAME, '-keyout', key, '-out', cert], check=True, capture_output=True)
    with socket.create_server(('127.0.0.1', 0)) as probe:
        port = probe.getsockname()[1]
    server = subprocess.Popen(['openssl', 's_server', '-accept', f'127.0.0.1:{port}', '-cert', cert, '-key', key,
                               '-early_data', '-max_early_data', '1024'], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    for line in server.stdout:
        if b'ACCEPT' in line:
            break
    threading.Thread(target=server.stdout.read, daemon=True).start()
    client = subprocess.Popen(['openssl', 's_client', '-connect', f'127.0.0.1:{port}', '-servername', NAME, '-sess_out',
                               ticket], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 10
    while not (os.path.exists(ticket) and os.path.getsize(ticket) > 0) and time.monotonic() < deadline:
        time.sleep(0.05)
    client.communicate(b'Q\n')
    server.terminate()
    server.wait()
    early = os.path.join(folder, 'early')
    with open(early, 'wb') as f:
        f.write(b'GET / HTTP/1.0\r\n\r\n')
    return ticket, early


def clients(folder):
    openssl = ['openssl', 's_client', '-connect']
    ticket, early = session(folder)
    yield 'openssl', lambda p: [*openssl, f'127.0.0.1:{p}', '-servername', NAME, '-alpn', 'h2,http/1.1']
    yield 'openssl_tls12', lambda p: [*openssl, f'127.0.0.1:{p}', '-servername', NAME, '-tls1_2']
    yield 'openssl_no_sni', lambda p: [*openssl, f'127.0.0.1:{p}', '-noservername']
    yield 'openssl_address', lambda p: [*openssl, f'127.0.0.1:{p}', '-servername', '127.0.0.1']
    yield 'openssl_dot', lambda p: [*openssl, f'127.0.0.1:{p}', '-servername', NAME + '.']
    yield 'openssl_early', lambda p: [*openssl, f'127.0.0.1:{p}', '-servername', NAME, '-sess_in', ticket,
                                      '-early_data', early]
    yield 'openssl_fragments', lambda p: [*openssl, f'127.0.0.1:{p}', '-servername', NAME, '-max_send_frag', '512',
                                          '-alpn', ','.join(f'proto-{i:02}-{"x" * 8}' for i in range(12)),
                                          '-sess_in', ticket]
    yield 'curl', lambda p: ['curl', '-sk', '--noproxy', '*', '--resolve', f'{NAME}:{p}:127.0.0.1',
                             f'https://{NAME}:{p}/']
    yield 'node', lambda p: ['node', '-e', NODE.replace('PORT', str(p))]
    yield 'python', lambda p: ['/usr/bin/python3', '-c', PYTHON.replace('PORT', str(p))]
    if shutil.which('go'):
        with open(os.path.join(folder, 'main.go'), 'w', encoding='utf-8') as f:
            f.write(GO)
        program = os.path.join(folder, 'hello')
        subprocess.run(['go', 'build', '-o', program, os.path.join(folder, 'main.go')], check=True, cwd=folder,
                       env={**os.environ, 'GO111MODULE': 'off'})
        yield 'go', lambda p: [program, f'127.0.0.1:{p}']
        yield 'go_ech', lambda p: [program, f'127.0.0.1:{p}', 'ech']


def main():
    print('/* ClientHellos as real programs send them; made by capture_tls_hellos.py */')
    with tempfile.TemporaryDirectory() as folder:
        for name, command in clients(folder):
            if shutil.which(command(0)[0]) is None:
                print(f'{name}: not installed', file=sys.stderr)
                continue
            data = record(command)
            if data is None:
                print(f'{name}: no hello came', file=sys.stderr)
                continue
            print(f'static const char hello_{name}[] =')
            text = data.hex()
            lines = [f'    "{text[i:i + 100]}"' for i in range(0, len(text), 100)]
            print('\n'.join(lines) + ';')


if __name__ == '__main__':
    main()
