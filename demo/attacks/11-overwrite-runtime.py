# tried: overwrite the sandbox's own program through /proc/1/exe
# would: run your code on the host at the next start (CVE-2019-5736)
# bare: no
import os, sys
why = ""
for path in ("/proc/1/exe", "/proc/self/exe", "/usr/bin/env"):
    try:
        os.close(os.open(path, os.O_WRONLY))
        print("opened", path)
        sys.exit(0)
    except OSError as e:
        why = e.strerror
print(why)
sys.exit(3)
