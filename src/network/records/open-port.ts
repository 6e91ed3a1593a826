/** Another UDP port of this node. Other nodes report how they see it from outside. */
import { randomBytes } from 'node:crypto';
import { EventEmitter } from 'node:events';
import { type Address, formatAddress } from '../../foundation/address.ts';
import { KEY_BYTES } from '../../foundation/records/keys.ts';
import type { NodeAt } from '../node-requests.ts';
import { type BorrowedPort, bindAnyPort, mayDialPort, type UdpSocket } from '../transport/udp-socket.ts';
import {
  COMMAND,
  decodeFindReply,
  encodeFindRequest,
  encodeLongFindRequest,
  type FindReply,
  SURVEY,
} from './messages.ts';
import type { Rpc } from './rpc/rpc.ts';

export class OpenPort {
  readonly #rpc: Rpc;
  readonly #socket: UdpSocket;

  /** @throws SvcError `connect_failed` if the system has no port */
  constructor(rpc: Rpc, socket: UdpSocket, family: 4 | 6) {
    this.#rpc = rpc;
    this.#socket = socket;
    bindAnyPort(socket, family === 4 ? '0.0.0.0' : '::');
    rpc.receive(socket, 'answers');
  }

  /** Its number before any translation. */
  get port(): number {
    return this.#socket.address()?.port ?? 0;
  }

  /** How another node sees the port. Null without an answer. */
  async seenBy(node: Address): Promise<Address | null> {
    return (await this.#rpc.ping(node, { retry: true, socket: this.#socket }))?.to ?? null;
  }

  /** The key and QUIC address that a node states to this port. Null without an answer or a QUIC port. */
  async identify(node: Address): Promise<NodeAt | null> {
    const found = await this.#survey(node);
    if (found === null || !mayDialPort(found.quicPort)) return null;
    return { nodeKey: found.nodeKey, address: { host: node.host, port: found.quicPort } };
  }

  /** Other nodes that a node knows. Empty without an answer. */
  async neighbors(node: Address): Promise<readonly Address[]> {
    return (await this.#survey(node))?.nodes.filter(({ port }) => mayDialPort(port)) ?? [];
  }

  async #survey(node: Address): Promise<FindReply | null> {
    const message = { command: COMMAND.find, target: randomBytes(KEY_BYTES), value: encodeFindRequest(SURVEY) };
    const reply = await this.#rpc.request(node, message, { retry: true, socket: this.#socket });
    return reply?.value ? decodeFindReply(reply.value) : null;
  }

  /** True if a node answers a datagram as long as those of a QUIC handshake; false after several attempts. */
  async answersLong(node: Address): Promise<boolean> {
    const message = { command: COMMAND.find, target: randomBytes(KEY_BYTES), value: encodeLongFindRequest() };
    return (await this.#rpc.request(node, message, { retry: true, socket: this.#socket })) !== null;
  }

  /**
   * Sends a datagram without the network tag. Settles when it was sent or refused.
   * @param ttl maximum number of hops; default: that of the system
   */
  async send(datagram: Uint8Array, to: Address, ttl?: number): Promise<void> {
    await this.#socket.send(datagram, to.port, to.host, ttl);
  }

  /** Settles when exactly these bytes arrive from an address, or never. */
  async waitForDatagram(expected: Uint8Array, from: Address, signal: AbortSignal): Promise<boolean> {
    const done = Promise.withResolvers<boolean>();
    const read = (datagram: Uint8Array, sender: Address): void => {
      if (formatAddress(sender) === formatAddress(from) && Buffer.compare(datagram, expected) === 0) done.resolve(true);
    };
    const give = (): void => done.resolve(false);
    this.#socket.on('message', read);
    signal.addEventListener('abort', give, { once: true });
    if (signal.aborted) give();
    try {
      return await done.promise;
    } finally {
      EventEmitter.prototype.off.call(this.#socket, 'message', read);
      signal.removeEventListener('abort', give);
    }
  }

  /** As `UdpSocket.handOver`. */
  handOver(): BorrowedPort | null {
    return this.#socket.handOver?.() ?? null;
  }

  /** Frees the port. */
  async close(): Promise<void> {
    await this.#socket.close();
  }
}
