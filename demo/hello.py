import os, platform, statistics
print(f"python {platform.python_version()}: mean of squares {statistics.mean(n * n for n in range(101))}, uid {os.getuid()}, "
      f"{len(os.listdir('/proc/self/fd')) - 1} descriptors")
