# tried: kill a process of yours by its number
# would: stop the monitor that watches it
# bare: yes
import os, signal, sys
try:
    os.kill(int(os.environ["DEMO_PID"]), signal.SIGTERM)
except OSError as e:
    sys.exit(print(e.strerror) or 3)
print("killed", os.environ["DEMO_PID"])
