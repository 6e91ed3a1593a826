/** A peer that writes the link protocol byte by byte, for messages that a correct implementation never sends. */
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import { encodeHeader, type LinkHeader } from '../../src/network/links/header.ts';
import {
  acceptHello,
  HELLO_NONCE_BYTES,
  INSTANCE_BYTES,
  networkId,
  receiveHello,
  sayHello,
} from '../../src/network/peers/greeter.ts';
import type { ConnectionEnd, Hello } from '../../src/network/peers/session.ts';
import { KIND, readExactly, u16 } from '../../src/network/peers/wire.ts';
import type { Connection, Endpoint, Stream } from '../../src/network/transport/types.ts';
import type { LinkNode, LinkWorld } from './link-world.ts';

const never = new AbortController().signal;

export class RawPeer {
  readonly key = KeyPair.generate();
  readonly endpoint: Endpoint;
  /** Incoming connections after their hello. */
  readonly accepted: RawSession[] = [];
  #onSession: (session: RawSession) => void = () => {};

  private constructor(world: LinkWorld, host?: string) {
    const options = { publicKey: this.key.publicKey, streamsPerConnection: 1_000_000 };
    this.endpoint = world.network.endpoint({ ...options, ...(host === undefined ? {} : { host }) });
  }

  /** @param host IP address that it dials from. Default: 127.0.0.1 */
  static async in(world: LinkWorld, host?: string): Promise<RawPeer> {
    const peer = new RawPeer(world, host);
    peer.endpoint.onConnection((connection) => void peer.#accept(connection));
    await peer.endpoint.start();
    return peer;
  }

  /** Handles incoming connections after their hello. */
  onSession(handler: (session: RawSession) => void): void {
    this.#onSession = handler;
  }

  dial(node: LinkNode): Promise<Connection> {
    return this.endpoint.dial(node.endpoint.address, node.key.publicKey);
  }

  /** Dials and sends a correct hello. */
  async connect(node: LinkNode, instance = 1, network = ''): Promise<RawSession> {
    const connection = await this.dial(node);
    const session = new RawSession(connection, this.#hello(instance), this.key.publicKey);
    await session.greet(networkId(network));
    return session;
  }

  #hello(instance: number): Hello {
    const nonce = new Uint8Array(HELLO_NONCE_BYTES).fill(this.accepted.length + 1);
    return { nonce, instance: new Uint8Array(INSTANCE_BYTES).fill(instance) };
  }

  async #accept(connection: Connection): Promise<void> {
    const session = new RawSession(connection, this.#hello(1), this.key.publicKey);
    this.accepted.push(session);
    await session.answerHello(networkId(''));
    this.#onSession(session);
  }
}

export class RawSession {
  readonly connection: Connection;
  readonly #ours: Hello;
  readonly #ourKey: Uint8Array;
  #theirs: Hello | null = null;
  #onStream: (stream: Stream) => void = () => {};

  constructor(connection: Connection, ours: Hello, ourKey: Uint8Array) {
    this.connection = connection;
    this.#ours = ours;
    this.#ourKey = ourKey;
    connection.onStream((stream) => this.#onStream(stream));
  }

  get here(): ConnectionEnd {
    return { nodeKey: this.#ourKey, nonce: this.#ours.nonce };
  }

  get there(): ConnectionEnd {
    if (this.#theirs === null) throw new Error('no hello yet');
    return { nodeKey: this.connection.remoteKey, nonce: this.#theirs.nonce };
  }

  async greet(network: Uint8Array): Promise<void> {
    this.#theirs = await sayHello(this.connection, this.#ours, network, never);
  }

  async answerHello(network: Uint8Array): Promise<void> {
    const first = await new Promise<Stream>((resolve) => {
      this.#onStream = resolve;
    });
    const { hello } = await receiveHello(first, network, never);
    this.#theirs = hello;
    acceptHello(first, this.#ours);
  }

  /** Handles new streams of the other node. */
  onStream(handler: (stream: Stream) => void): void {
    this.#onStream = handler;
  }

  /** Opens a stream and sends bytes on it. */
  async send(...parts: readonly Uint8Array[]): Promise<Stream> {
    const stream = await this.connection.openStream();
    stream.write(Buffer.concat(parts));
    return stream;
  }

  /** Opens a stream with the header of a link. */
  link(header: LinkHeader): Promise<Stream> {
    return this.send(linkBytes(header));
  }
}

/** The first bytes of a link stream. */
export function linkBytes(header: LinkHeader): Uint8Array {
  const encoded = encodeHeader(header);
  return Buffer.concat([Uint8Array.of(KIND.link), u16(encoded.length), encoded]);
}

/** The first byte of the response on a stream. */
export async function statusOn(stream: Stream): Promise<number | undefined> {
  return (await readExactly(stream, 1, never))[0];
}
