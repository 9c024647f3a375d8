# tried: read the SSH key in your home folder
# would: hand your servers to whoever wrote the code
# bare: yes
import os, sys
try:
    text = open(os.environ["VICTIM_HOME"] + "/.ssh/id_ed25519").read()
except OSError as e:
    sys.exit(print(e.strerror) or 3)
print("read", len(text), "bytes")
