/** TAP and TUN devices, which carry frames or packets of the kernel to a process. */
import { dlopen } from 'node:ffi';
import { openSync } from 'node:fs';

/** Linux constants: `TUNSETIFF` with `IFF_NO_PI` and `IFF_TAP` or `IFF_TUN`. */
const TUNSETIFF = 0x400454ca;
const KINDS = { tap: 0x1002, tun: 0x1001 } as const;
/** Size of an interface name, and of the argument of `TUNSETIFF`, bytes. */
const NAME_BYTES = 16;
const REQUEST_BYTES = 40;

const { functions: kernel } = dlopen(null, { ioctl: { arguments: ['i32', 'u32', 'buffer'], return: 'i32' } });

/**
 * Creates a device in the network namespace of this process.
 * @param flags of `open`
 * @returns its descriptor, which reads and writes one frame or packet at a time
 */
export function openDevice(kind: keyof typeof KINDS, name: string, flags: number | string): number {
  const fd = openSync('/dev/net/tun', flags);
  const request = Buffer.alloc(REQUEST_BYTES);
  request.write(name);
  request.writeUInt16LE(KINDS[kind], NAME_BYTES);
  if (kernel.ioctl(fd, TUNSETIFF, request) !== 0) throw new Error('TUNSETIFF failed');
  return fd;
}
