# tried: take 4 GiB of memory
# would: make the kernel kill something of yours
# bare: no
# flags: --memory 96m
# stopped-by: memory
import sys
blocks = []
try:
    for _ in range(256):
        blocks.append(bytearray(b"x") * (16 << 20))
except MemoryError:
    n = len(blocks)
    blocks.clear()
    sys.exit(print(f"no more memory, after {n * 16} MiB") or 3)
print("took 4 GiB")
