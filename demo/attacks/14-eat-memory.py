# tried: take 4 GiB of memory
# would: make the kernel kill something of yours
# bare: no
# flags: --memory 96m
# stopped-by: memory
blocks = []
for _ in range(256):
    blocks.append(bytearray(b"x") * (16 << 20))
print("took 4 GiB")
