/** The interfaces of this machine. Timers and sockets read them, so a failure must not end the process. */
import { networkInterfaces } from 'node:os';

type Interfaces = ReturnType<typeof networkInterfaces>;

/** Null if the system cannot list the interfaces: it needs a free descriptor. */
export function readInterfaces(read: typeof networkInterfaces = networkInterfaces): Interfaces | null {
  try {
    return read();
  } catch {
    return null;
  }
}
