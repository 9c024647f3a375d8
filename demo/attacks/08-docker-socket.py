# tried: talk to a service through its unix socket
# would: ask dockerd for a container with / mounted
# bare: yes
# flags: --bind $DEMO_SOCKETS
import os, socket, sys
try:
    s = socket.socket(socket.AF_UNIX)
    s.connect(os.environ["DEMO_SOCKETS"] + "/docker.sock")
except OSError as e:
    sys.exit(print(e.strerror) or 3)
print("connected")
