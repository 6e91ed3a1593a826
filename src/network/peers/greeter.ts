/**
 * The hello on each new connection. Both nodes check that they use the same protocol on the same network, and exchange
 * a fresh nonce for the proofs of agents. Later streams go to the dispatcher.
 */

import { createHash, randomBytes } from 'node:crypto';
import type { Duplex } from 'node:stream';
import { equalBytes } from '../../foundation/bytes.ts';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { guard } from '../../foundation/stream-listeners.ts';
import type { Connection, Stream } from '../transport/types.ts';
import type { Hello, NodeSession } from './session.ts';
import type { StreamDispatcher } from './stream-dispatcher.ts';
import { endWith, ProtocolBreach, Refusal, type ReplyStatus, readExactly, STATUS } from './wire.ts';

/** Time for both hellos after the handshake, milliseconds. */
export const HELLO_TIMEOUT_MS = 5_000;
/** Maximum number of accepted connections before their hello. */
export const MAX_UNGREETED = 256;
/** Maximum number of streams that arrive before our side of the hello is complete. */
const MAX_EARLY_STREAMS = 64;

/** A connection after both hellos. */
export interface Greeted {
  readonly connection: Connection;
  readonly ours: Hello;
  readonly theirs: Hello;
}

export class Greeter {
  readonly #network: Uint8Array;
  readonly #instance = new Uint8Array(randomBytes(INSTANCE_BYTES));
  readonly #gate: StreamDispatcher;
  readonly #take: (greeted: Greeted) => NodeSession;
  readonly #clock: Clock;
  readonly #ungreeted = new Set<Connection>();
  #stopped = false;

  /**
   * @param network name of the network; nodes of another one are refused
   * @param take hands the connection to its peer
   */
  constructor(network: string, gate: StreamDispatcher, take: (greeted: Greeted) => NodeSession, clock: Clock) {
    this.#network = networkId(network);
    this.#gate = gate;
    this.#take = take;
    this.#clock = clock;
  }

  /** Closes connections without a hello, and refuses new ones. */
  stop(): void {
    this.#stopped = true;
    for (const connection of this.#ungreeted) connection.close();
  }

  /**
   * Sends the hello on a connection that this node dialed.
   * @throws SvcError as `sayHello`; the connection is closed then
   */
  async greet(connection: Connection, signal: AbortSignal): Promise<NodeSession> {
    const early: Stream[] = [];
    let deliver = (stream: Stream): void => {
      if (early.length < MAX_EARLY_STREAMS) early.push(stream);
      else stream.destroy();
    };
    connection.onStream((stream) => {
      guard(stream);
      deliver(stream);
    });
    try {
      const ours = this.#ourHello();
      const theirs = await sayHello(connection, ours, this.#network, signal);
      const session = this.#take({ connection, ours, theirs });
      deliver = (stream) => this.#gate.admit(stream, session);
      for (const stream of early) deliver(stream);
      return session;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Waits for the hello on a connection that another node dialed. */
  receive(connection: Connection): void {
    if (this.#stopped || this.#ungreeted.size >= MAX_UNGREETED) return connection.close();
    this.#ungreeted.add(connection);
    const limit = awakeTimeout(this.#clock, HELLO_TIMEOUT_MS);
    limit.signal.addEventListener('abort', () => connection.close());
    const greeted = (): void => {
      this.#ungreeted.delete(connection);
      limit[Symbol.dispose]();
    };
    detach(connection.closed.then(greeted));
    // Before the answer to its hello, the other node must not open another stream.
    let deliver = (first: Stream): void => {
      deliver = () => connection.close();
      this.#answer(connection, first, limit.signal, (session) => {
        greeted();
        deliver = (stream) => this.#gate.admit(stream, session);
      }).catch(() => connection.close());
    };
    connection.onStream((stream) => {
      guard(stream);
      deliver(stream);
    });
  }

  async #answer(
    connection: Connection,
    stream: Stream,
    signal: AbortSignal,
    greeted: (session: NodeSession) => void,
  ): Promise<void> {
    const { status, hello: theirs } = await receiveHello(stream, this.#network, signal);
    if (theirs === null) {
      // The refusal must arrive before the connection closes. The other node closes it after reading.
      stream.once('close', () => connection.close());
      return endWith(stream, status, this.#clock);
    }
    const ours = this.#ourHello();
    const session = this.#take({ connection, ours, theirs });
    if (session.closed) return;
    greeted(session);
    acceptHello(stream, ours);
  }

  #ourHello(): Hello {
    return { nonce: new Uint8Array(randomBytes(HELLO_NONCE_BYTES)), instance: this.#instance };
  }
}

/** The version of everything in docs/protocol-links.md. */
export const LINK_VERSION = 1;
/** The first byte of the first stream, now and in every later version. */
export const KIND_HELLO = 0x01;
export const HELLO_NONCE_BYTES = 32;
export const INSTANCE_BYTES = 16;
const NETWORK_BYTES = 32;

/** Separates networks. It is a hash, so strangers do not learn the name of a private network. */
export function networkId(name: string): Uint8Array {
  return new Uint8Array(createHash('sha256').update(`svcd/network/v1\0${name}`).digest());
}

/**
 * Sends the hello on a connection that this node dialed.
 * @throws SvcError `connect_failed` if the other node is on another network, `protocol_error` for another version or a
 *   malformed answer, or the signal's reason
 */
export async function sayHello(
  connection: Connection,
  ours: Hello,
  network: Uint8Array,
  signal: AbortSignal,
): Promise<Hello> {
  // protocol-links.md, step 2
  const stream = await connection.openStream();
  guard(stream);
  try {
    stream.end(Buffer.concat([Uint8Array.of(KIND_HELLO, LINK_VERSION), network, ours.nonce, ours.instance]));
    const [status = STATUS.failed] = await readExactly(stream, 1, signal);
    if (status !== STATUS.ok) throw new Refusal(status);
    return await readHello(stream, signal);
  } finally {
    // Nothing else is expected on this stream.
    stream.destroy();
  }
}

/**
 * Reads the hello of the dialing node from its first stream. With `ok`, the caller answers with `acceptHello` when it
 * is ready for streams.
 * @throws SvcError as `readExactly`
 */
export async function receiveHello(
  stream: Duplex,
  network: Uint8Array,
  signal: AbortSignal,
): Promise<{ readonly status: ReplyStatus; readonly hello: Hello | null }> {
  const [kind, version] = await readExactly(stream, 2, signal);
  if (kind !== KIND_HELLO) throw new ProtocolBreach('The other node did not say hello.');
  if (version !== LINK_VERSION) return { status: STATUS.otherVersion, hello: null };
  const theirs = await readExactly(stream, NETWORK_BYTES, signal);
  if (!equalBytes(theirs, network)) return { status: STATUS.otherNetwork, hello: null };
  return { status: STATUS.ok, hello: await readHello(stream, signal) };
}

/** Answers a hello with our own. */
export function acceptHello(stream: Duplex, ours: Hello): void {
  // protocol-links.md, step 3
  stream.end(Buffer.concat([Uint8Array.of(STATUS.ok), ours.nonce, ours.instance]));
  stream.resume();
}

async function readHello(stream: Duplex, signal: AbortSignal): Promise<Hello> {
  const bytes = await readExactly(stream, HELLO_NONCE_BYTES + INSTANCE_BYTES, signal);
  // Copies: the bytes are a view of a large buffer, which should not live as long as the connection.
  return {
    nonce: Uint8Array.from(bytes.subarray(0, HELLO_NONCE_BYTES)),
    instance: Uint8Array.from(bytes.subarray(HELLO_NONCE_BYTES)),
  };
}
