"""What the attacks aim at: a TCP port on the host's loopback and a unix socket. Prints the port, then accepts for ever."""
import select
import socket
import sys

tcp = socket.create_server(("127.0.0.1", 0))
unix = socket.socket(socket.AF_UNIX)
unix.bind(sys.argv[1])
unix.listen()
print(tcp.getsockname()[1], flush=True)
while True:
    for ready in select.select([tcp, unix], [], [])[0]:
        ready.accept()[0].close()
