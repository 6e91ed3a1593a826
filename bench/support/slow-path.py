"""A network path between two network namespaces: `slow-path.py <pid> <one-way ms> <loss>`.

Connects this namespace (10.9.0.1) and the namespace of the process (10.9.0.2) with two tun devices, and delays each
packet. After SIGUSR1 it drops the given share of packets (0 to 1), chosen with a fixed seed. Prints "ready" when both
ends are up. Needs `unshare -Urn`, but neither netem nor root.
"""

import ctypes
import fcntl
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from select import select

TUNSETIFF = 0x400454CA
IFF_TUN_NO_PI = 0x1001
CLONE_NEWNET = 0x40000000
MTU = 1500
# Large enough that queues drop nothing.
QUEUE_PACKETS = 100_000
BURST = 64


def tun(address):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", b"path", IFF_TUN_NO_PI))
    for arguments in (
        f"addr add {address}/24 dev path",
        f"link set path mtu {MTU} txqueuelen {QUEUE_PACKETS} up",
    ):
        subprocess.run(["ip", *arguments.split()], check=True)
    return device


def main():
    pid, delay, loss = sys.argv[1], float(sys.argv[2]) / 1000, float(sys.argv[3])
    here = tun("10.9.0.1")
    with open(f"/proc/{pid}/ns/net") as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
    there = tun("10.9.0.2")
    print("ready", flush=True)
    lost = random.Random(1)
    losing = []
    signal.signal(signal.SIGUSR1, lambda *_: losing.append(True))
    ways = ((here, there, deque()), (there, here, deque()))
    while True:
        now = time.monotonic()
        heads = [queue[0][0] for _, _, queue in ways if queue]
        readable, _, _ = select([here, there], [], [], max(0.0, min(heads) - now) if heads else None)
        now = time.monotonic()
        for source, target, queue in ways:
            if source in readable:
                try:
                    for _ in range(BURST):
                        packet = os.read(source, 2048)
                        if not losing or lost.random() >= loss:
                            queue.append((now + delay, packet))
                except BlockingIOError:
                    pass
            while queue and queue[0][0] <= now:
                try:
                    os.write(target, queue.popleft()[1])
                except OSError:
                    pass


main()
