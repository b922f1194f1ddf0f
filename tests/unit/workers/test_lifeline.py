import os
import select
import signal
import subprocess
import sys

import pytest

PARENT = """
import subprocess, sys, threading, time

CHILD = '''
import sys, time
from kernelcast.workers.child_main import die_with_parent
die_with_parent()
print(sys.stdin.read() == "", flush=True)
sum(range(10 ** 12))  # as a driver that never lets go of the interpreter
'''
found = []


def start():
    found.append(subprocess.Popen([sys.executable, "-P", "-c", CHILD], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE))


thread = threading.Thread(target=start)
thread.start()
thread.join()  # what started it has ended, and it lives on
found[0].stdout.readline()
print(found[0].pid, flush=True)
time.sleep(600)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux sends the signal")
def test_a_busy_child_ends_with_its_killed_parent() -> None:
    """A child that never comes back to Python ends with its parent, not with a thread of it."""
    with subprocess.Popen([sys.executable, "-P", "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            assert select.select([child], [], [], 0.2)[0] == []  # it goes on
            parent.send_signal(signal.SIGKILL)
            assert select.select([child], [], [], 10)[0] == [child]  # it has ended
        finally:
            parent.kill()
            os.close(child)
