# tried: ignore SIGTERM, leave a daemon behind
# would: stay after you thought that it was over
# bare: no
# flags: --timeout 1s --grace 500ms
# stopped-by: timeout
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
while True:
    time.sleep(60)
