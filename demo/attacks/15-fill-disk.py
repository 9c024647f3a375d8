# tried: fill the disk
# would: stop every service that logs
# bare: no
# flags: --disk 16m
import sys
n = 0
try:
    with open("/tmp/fill", "wb") as f:
        while n < 1 << 30:
            n += f.write(b"x" * (1 << 20))
            f.flush()
except OSError as e:
    sys.exit(print(f"{e.strerror}, after {n >> 20} MiB") or 3)
print("wrote 1 GiB")
