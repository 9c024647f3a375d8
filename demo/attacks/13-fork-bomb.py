# tried: a fork bomb
# would: freeze the machine
# bare: no
# flags: --pids 64
import os, signal, sys
children = []
try:
    while len(children) < 2000:
        pid = os.fork()
        if pid == 0:
            signal.pause()
        children.append(pid)
except OSError as e:
    why = f"{e.strerror}, at process {len(children)}"
else:
    why = None
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
print(why or "2,000 processes")
sys.exit(3 if why else 0)
