/**
 * What stands between the DHT engine and its UDP sockets. Every datagram begins with the tag of its
 * network: one of another network is no datagram at all, whatever the engine would make of it. An
 * answer is let in only from the machine that was asked, for the engine itself looks at nothing but a
 * number that can be guessed. No address gets more requests answered per second than its share. And a
 * machine with several addresses is to each other node the one that it sees, with the routing id of that.
 */
import { createHash } from 'node:crypto';
import { EventEmitter } from 'node:events';
import type DHT from 'dht-rpc';
import { equalBytes } from '../../foundation/bytes.ts';
import { LruCache } from '../../foundation/lru-cache.ts';
import { MAX_DATAGRAM_BYTES } from './messages.ts';

/** Bytes of a network's tag. */
export const NETWORK_TAG_BYTES = 8;
/** The engine's first byte: version 3, and whether it is a request or an answer. */
const REQUEST_BYTE = 0x03;
export const ANSWER_BYTE = 0x13;
/** Where its flags are, the one that says that a routing id follows the header, and the id's length. */
const FLAGS_AT = 1;
const ID_FLAG = 1;
/** All flags are below it. The engine reads larger first bytes as the beginning of a longer number, whose flags stand elsewhere. */
const FLAGS_END = 32;
const ID_BYTES = 32;
/** Where the engine's datagrams hold the number that ties an answer to its request, and their least length. */
const REQUEST_ID_AT = 2;
const HEADER_BYTES = 10;
/** Requests whose answers are awaited. */
const MAX_AWAITED = 4096;

/** The tag of a network's name; the public network has the empty one. */
export function networkTag(network: string): Uint8Array {
  const hash = createHash('sha256').update(`svcd/network/${network}\0`).digest();
  return new Uint8Array(hash.subarray(0, NETWORK_TAG_BYTES));
}

export interface WireHooks {
  /** Whether a request of this address may be looked at. */
  admits(from: DHT.Address): boolean;
  /** Has a request answered, when its turn comes. */
  queue(from: DHT.Address, answer: () => void): void;
  /** Told of each datagram that is let in. */
  onDatagram(from: DHT.Address, isRequest: boolean, socket: DHT.Socket): void;
  /** Whether an address stands in the routing table. */
  knows(from: DHT.Address): boolean;
  /** True where an answer from one address may be that of a machine which was asked at another. */
  mayBeOneMachine(asked: DHT.Address, from: DHT.Address): boolean;
  /** The routing id that a host checks ours against, where it is not that of our own address; else null. */
  idSeenBy(host: string): Uint8Array | null;
  /** Told of an address that asks, says that it is a node, and is not known. */
  onStranger(from: DHT.Address): void;
}

function requestId(datagram: Uint8Array): number {
  return (datagram[REQUEST_ID_AT] ?? 0) + 256 * (datagram[REQUEST_ID_AT + 1] ?? 0);
}

/** True where the sender says which routing id it has. */
function hasId(datagram: Uint8Array): boolean {
  return ((datagram[FLAGS_AT] ?? 0) & ID_FLAG) !== 0;
}

/** The same request of somebody who does not say that he is a node: the engine would believe it at once. */
function withoutId(request: Uint8Array): Uint8Array {
  const bare = Buffer.concat([request.subarray(0, HEADER_BYTES), request.subarray(HEADER_BYTES + ID_BYTES)]);
  bare[FLAGS_AT] = (bare[FLAGS_AT] ?? 0) & ~ID_FLAG;
  return bare;
}

/** What all sockets of one node share. */
class DatagramFilter {
  readonly tag: Uint8Array;
  readonly #hooks: WireHooks;
  /** By the number of a request, who was asked. */
  readonly #asked = new LruCache<number, DHT.Address>({ maxEntries: MAX_AWAITED });

  constructor(tag: Uint8Array, hooks: WireHooks) {
    this.tag = tag;
    this.#hooks = hooks;
  }

  /** The datagram for the engine; null where it is not let in. */
  enter(datagram: Uint8Array, from: DHT.Address, socket: DHT.Socket): Uint8Array | null {
    if (datagram.length > MAX_DATAGRAM_BYTES || datagram.length < NETWORK_TAG_BYTES + HEADER_BYTES) return null;
    if (!equalBytes(datagram.subarray(0, NETWORK_TAG_BYTES), this.tag)) return null;
    const inner = datagram.subarray(NETWORK_TAG_BYTES);
    if ((inner[FLAGS_AT] ?? FLAGS_END) >= FLAGS_END) return null;
    const isRequest = inner[0] === REQUEST_BYTE;
    if (isRequest ? !this.#hooks.admits(from) : !this.#isAwaited(inner, from)) return null;
    this.#hooks.onDatagram(from, isRequest, socket);
    if (!isRequest || !hasId(inner) || this.#hooks.knows(from)) return inner;
    this.#hooks.onStranger(from);
    return withoutId(inner);
  }

  queue(from: DHT.Address, answer: () => void): void {
    this.#hooks.queue(from, answer);
  }

  #isAwaited(answer: Uint8Array, from: DHT.Address): boolean {
    const asked = answer[0] === ANSWER_BYTE ? this.#asked.peek(requestId(answer)) : undefined;
    return asked !== undefined && (asked.host === from.host || this.#hooks.mayBeOneMachine(asked, from));
  }

  leave(datagram: Uint8Array, to: DHT.Address): Uint8Array {
    if (datagram[0] === REQUEST_BYTE) this.#asked.set(requestId(datagram), to);
    const tagged = Buffer.concat([this.tag, datagram]);
    const id = hasId(datagram) ? this.#hooks.idSeenBy(to.host) : null;
    if (id !== null) tagged.set(id, NETWORK_TAG_BYTES + HEADER_BYTES);
    return tagged;
  }
}

/** A UDP socket as the engine wants it, over one of its own: adds the tag, and takes off only the right one. */
export class TaggedSocket extends EventEmitter implements DHT.Socket {
  readonly #inner: DHT.Socket;
  readonly #gate: DatagramFilter;
  #closed = false;

  constructor(inner: DHT.Socket, gate: DatagramFilter) {
    super();
    this.#inner = inner;
    this.#gate = gate;
    inner.on('message', (datagram: Uint8Array, from: DHT.Address) => {
      const entered = gate.enter(datagram, from, this);
      if (entered === null) return;
      if (entered[0] === REQUEST_BYTE) gate.queue(from, () => this.#hand(entered, from));
      else this.#hand(entered, from);
    });
  }

  /** The socket as it is. */
  get plain(): DHT.Socket {
    return this.#inner;
  }

  #hand(datagram: Uint8Array, from: DHT.Address): void {
    if (!this.#closed) this.emit('message', datagram, from);
  }

  get bound(): boolean {
    return this.#inner.bound;
  }

  bind(port: number, host: string): void {
    this.#inner.bind(port, host);
  }

  address(): DHT.Address | null {
    return this.#inner.address();
  }

  close(): Promise<void> {
    this.#closed = true;
    return this.#inner.close();
  }

  trySend(buffer: Uint8Array, port: number, host: string, ttl?: number): void {
    this.#inner.trySend(this.#gate.leave(buffer, { host, port }), port, host, ttl);
  }

  send(buffer: Uint8Array, port: number, host: string, ttl?: number): Promise<boolean> {
    return this.#inner.send(this.#gate.leave(buffer, { host, port }), port, host, ttl);
  }
}

/** A UDP socket as it is, and the engine's view of it. */
export interface SocketPair {
  readonly plain: DHT.Socket;
  readonly tagged: DHT.Socket;
}

/**
 * Makes the engine open tagged sockets; call it before the engine binds.
 * @returns what makes further ones, which the engine does not read by itself
 */
export function tagSockets(udx: Pick<DHT.Udx, 'createSocket'>, tag: Uint8Array, hooks: WireHooks): () => SocketPair {
  const createSocket = udx.createSocket.bind(udx);
  const gate = new DatagramFilter(tag, hooks);
  const createPair = (): SocketPair => {
    const plain = createSocket();
    return { plain, tagged: new TaggedSocket(plain, gate) };
  };
  udx.createSocket = () => createPair().tagged;
  return createPair;
}
