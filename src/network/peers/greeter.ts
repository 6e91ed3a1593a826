/** The hello on each new connection, whoever dialled it; afterwards its streams go through the gate. */

import { randomBytes } from 'node:crypto';
import type { Clock } from '../../foundation/clock.ts';
import { detach } from '../../foundation/detached.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import { guard } from '../../foundation/stream-listeners.ts';
import {
  acceptHello,
  HELLO_NONCE_BYTES,
  type Hello,
  INSTANCE_BYTES,
  networkId,
  receiveHello,
  sayHello,
} from '../links/hello.ts';
import type { StreamDispatcher } from '../links/stream-dispatcher.ts';
import { endWith } from '../links/wire.ts';
import type { Connection, Stream } from '../transport/types.ts';
import type { NodeSession } from './session.ts';

/** Time for both hellos after the handshake, milliseconds. */
export const HELLO_TIMEOUT_MS = 5_000;
/** Accepted connections that have not yet said hello. */
export const MAX_UNGREETED = 256;
/** Streams that arrive before our side of the hello is through. */
const MAX_EARLY_STREAMS = 64;

/** A connection on which both nodes have said hello. */
export interface Greeted {
  readonly connection: Connection;
  readonly ours: Hello;
  readonly theirs: Hello;
}

interface GreeterDependencies {
  readonly clock: Clock;
  readonly gate: Pick<StreamDispatcher, 'admit'>;
  /** Takes the connection into the pool; what it returns is closed where there is no place for it. */
  readonly take: (greeted: Greeted) => NodeSession;
}

export class Greeter {
  readonly #network: Uint8Array;
  readonly #instance = new Uint8Array(randomBytes(INSTANCE_BYTES));
  readonly #deps: GreeterDependencies;
  readonly #ungreeted = new Set<Connection>();
  #stopped = false;

  /** @param network name of the network; nodes of another one are refused */
  constructor(network: string, dependencies: GreeterDependencies) {
    this.#network = networkId(network);
    this.#deps = dependencies;
  }

  /** Takes no more connections, and closes those that have not said hello. */
  stop(): void {
    this.#stopped = true;
    for (const connection of this.#ungreeted) connection.close();
  }

  /**
   * Says hello on a connection that we dialled.
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
      const { gate, take } = this.#deps;
      const ours = this.#ourHello();
      const theirs = await sayHello(connection, ours, this.#network, signal);
      const session = take({ connection, ours, theirs });
      deliver = (stream) => gate.admit(stream, session);
      for (const stream of early) deliver(stream);
      return session;
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  /** Waits for the hello of a connection that another node dialled. */
  receive(connection: Connection): void {
    if (this.#stopped || this.#ungreeted.size >= MAX_UNGREETED) return connection.close();
    this.#ungreeted.add(connection);
    const limit = awakeTimeout(this.#deps.clock, HELLO_TIMEOUT_MS);
    limit.signal.addEventListener('abort', () => connection.close());
    const greeted = (): void => {
      this.#ungreeted.delete(connection);
      limit[Symbol.dispose]();
    };
    detach(connection.closed.then(greeted));
    // Until its hello is answered the other node has nothing else to say.
    let deliver = (first: Stream): void => {
      deliver = () => connection.close();
      this.#answer(connection, first, limit.signal, (session) => {
        greeted();
        deliver = (stream) => this.#deps.gate.admit(stream, session);
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
      // The refusal must reach the other node before the connection ends; it hangs up when it has read it.
      stream.once('close', () => connection.close());
      return endWith(stream, status, this.#deps.clock);
    }
    const ours = this.#ourHello();
    const session = this.#deps.take({ connection, ours, theirs });
    if (session.closed) return;
    greeted(session);
    acceptHello(stream, ours);
  }

  #ourHello(): Hello {
    return { nonce: new Uint8Array(randomBytes(HELLO_NONCE_BYTES)), instance: this.#instance };
  }
}
