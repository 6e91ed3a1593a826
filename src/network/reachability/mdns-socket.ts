/** The UDP socket of multicast DNS. It shares its port with the other responders of this machine. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import { listening } from '../../foundation/stream-listeners.ts';

const GROUP = '224.0.0.251';
const PORT = 5353;
/** Hop limit of what we send (RFC 6762, section 11). */
const TTL = 255;

export interface MdnsSocketOptions {
  /** The IPv4 address of the one interface to use; every interface if left out. */
  readonly interface?: string | undefined;
  /** 5353 if left out. */
  readonly port?: number | undefined;
}

export interface MdnsSocketHandlers {
  readonly onMessage: (packet: Buffer, from: string) => void;
  readonly onError: (error: unknown) => void;
}

export class MdnsSocket {
  readonly #options: MdnsSocketOptions;
  readonly #handlers: MdnsSocketHandlers;
  readonly #socket: Socket;
  /** Addresses of the interfaces on which the group was joined. */
  readonly #joined = new Set<string>();
  #isOpen = false;

  constructor(options: MdnsSocketOptions, handlers: MdnsSocketHandlers) {
    this.#options = options;
    this.#handlers = handlers;
    this.#socket = createSocket({ type: 'udp4', reuseAddr: true });
  }

  /** Binds the port; fails if another program holds it alone. */
  async open(): Promise<void> {
    const socket = this.#socket;
    const { onMessage, onError } = this.#handlers;
    socket.on('message', (packet, { address }) => onMessage(packet, address));
    const bound = listening(socket);
    socket.bind(this.#options.port ?? PORT, '0.0.0.0');
    try {
      await bound;
    } catch (error) {
      socket.close();
      throw error;
    }
    this.#isOpen = true;
    socket.on('error', onError);
    socket.setMulticastTTL(TTL);
    socket.setMulticastLoopback(true);
    this.join();
  }

  /** Joins the group on every interface that has come up since. */
  join(): void {
    if (!this.#isOpen) return;
    const { interface: only } = this.#options;
    const addresses = only === undefined ? interfaceAddresses() : [only];
    // An interface that has gone took its membership with it.
    for (const address of this.#joined) if (!addresses.includes(address)) this.#joined.delete(address);
    for (const address of addresses.filter((address) => !this.#joined.has(address))) {
      this.#joined.add(address);
      try {
        this.#socket.addMembership(GROUP, address);
        this.#socket.setMulticastInterface(only ?? outgoingAddress());
      } catch (error) {
        this.#handlers.onError(error);
      }
    }
  }

  send(packet: Uint8Array): void {
    if (!this.#isOpen) return;
    this.#socket.send(packet, this.#options.port ?? PORT, GROUP, (error) => {
      if (error !== null) this.#handlers.onError(error);
    });
  }

  async close(): Promise<void> {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    // The system leaves the group with the socket.
    const closed = once(this.#socket, 'close');
    this.#socket.close();
    await closed;
  }
}

/** One IPv4 address of each interface. */
function interfaceAddresses(): string[] {
  return Object.values(networkInterfaces())
    .map((addresses) => addresses?.find(({ family }) => family === 'IPv4')?.address)
    .filter((address) => address !== undefined);
}

/** The interface that packets leave by: the system's choice, and en0 on macOS; loopback if there is no other. */
function outgoingAddress(): string {
  const outward = (addresses: ReturnType<typeof networkInterfaces>[string]): string | undefined =>
    addresses?.find(({ family, internal }) => family === 'IPv4' && !internal)?.address;
  const interfaces = networkInterfaces();
  if (!Object.values(interfaces).some((addresses) => outward(addresses) !== undefined)) return '127.0.0.1';
  return (process.platform === 'darwin' ? outward(interfaces['en0']) : undefined) ?? '0.0.0.0';
}
