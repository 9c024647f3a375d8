# tried: type a command into your terminal with TIOCSTI, high bits set
# would: run it in your shell after the sandbox has ended
# bare: no
# flags: --pty
import ctypes, os, sys, termios
libc = ctypes.CDLL(None, use_errno=True)
ioctl = 16 if os.uname().machine == "x86_64" else 29
if libc.syscall(ioctl, 0, ctypes.c_ulong(termios.TIOCSTI | (1 << 32)), b"x") != 0:
    sys.exit(print(os.strerror(ctypes.get_errno())) or 3)
print("typed")
