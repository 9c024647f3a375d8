# tried: send a file to a server on the network
# would: leak the source code
# bare: yes
import os, socket, sys
try:
    with socket.create_connection(("127.0.0.1", int(os.environ["DEMO_PORT"])), timeout=3) as s:
        s.sendall(b"the source code")
except OSError as e:
    sys.exit(print(e.strerror or e) or 3)
print("sent")
