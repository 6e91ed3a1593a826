/**
 * The native QUIC engine: a prebuilt Node-API addon (Rust quinn, mutual TLS 1.3 with Ed25519 keys), one npm package per
 * platform. This file has its types and loads the package for this machine.
 *
 * Undocumented behavior: a `Stream` allows one call per direction at a time, so `stopRead` waits for a pending `read`
 * and `resetWrite` for a blocked `write`. After a reset was reported once, further reads look like a clean end.
 * `port()` of an aborted `Server` ends the process. `handshakeTimeout` and the two MTU fields have no effect.
 */

import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { base58 } from '@scure/base';
import type { Address } from '../../../foundation/address.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { PUBLIC_KEY_BYTES } from '../../../foundation/identity/ed25519.ts';
import type { KeyPair } from '../../../foundation/identity/keys.ts';
import { canonicalIp } from '../../../foundation/ip.ts';
import { memberOf } from '../../../foundation/json.ts';
import { loadAddon } from '../../../foundation/native-addon.ts';
import { isSingleFile } from '../../../foundation/package-file.ts';
import type { EngineConnection } from '../engine-connection.ts';

/** The engine requires every field. Times in milliseconds, sizes in bytes. */
interface EngineConfig {
  readonly privateKeyProto: Uint8Array;
  readonly handshakeTimeout: number;
  readonly shutdownTimeout: number;
  readonly maxIdleTimeout: number;
  readonly keepAliveInterval: number;
  readonly maxConcurrentStreamLimit: number;
  readonly maxStreamData: number;
  readonly maxConnectionData: number;
  readonly receiveBufferSize: number;
  readonly sendBufferSize: number;
  readonly initialMtu: number;
  readonly mtuUpperBound: number;
}

export interface EngineServer {
  /** Accepts one incoming handshake and settles with its result. */
  inboundConnection(): Promise<EngineConnection>;
  port(): number;
  stats(): { readonly acceptedHandshakes: number };
  /** Settles when the closing packets are sent, or after `shutdownTimeout`. */
  abort(): Promise<void>;
}

/** Whether a `Server` could not be made because another program uses its port. The engine reports a text of the system. */
export function isPortInUse(cause: unknown): boolean {
  return cause instanceof Error && cause.message.startsWith('Address already in use');
}

export interface EngineClient {
  outboundConnection(host: string, port: number): Promise<EngineConnection>;
  abort(): void;
}

export interface QuicEngine {
  readonly QuinnConfig: new (config: EngineConfig) => object;
  readonly Server: new (config: object, host: string, port: number) => EngineServer;
  /** Family 0 is IPv4, 1 is IPv6. */
  readonly Client: new (
    config: object,
    family: 0 | 1,
  ) => EngineClient;
}

const PACKAGE_PREFIX = '@chainsafe/libp2p-quic-';

/** npm packages that can contain the engine for a platform, in order of preference. */
export function enginePackages(platform: string, arch: string): readonly string[] {
  const suffixes = platform === 'linux' ? ['-gnu', '-musl'] : platform === 'win32' ? ['-msvc'] : [''];
  return suffixes.map((suffix) => `${PACKAGE_PREFIX}${platform}-${arch}${suffix}`);
}

function isEngine(value: unknown): value is QuicEngine {
  return ['QuinnConfig', 'Server', 'Client'].every((name) => typeof memberOf(value, name) === 'function');
}

/**
 * Loads the engine for this machine.
 * @param require loads a package
 * @throws SvcError `internal` with the names of the missing packages
 */
export function loadEngine(
  require: (name: string) => unknown = isSingleFile ? () => loadAddon('quic') : createRequire(import.meta.url),
  platform: string = process.platform,
  arch: string = process.arch,
): QuicEngine {
  const packages = enginePackages(platform, arch);
  // Threads of the engine, unless the environment sets them: one processor is left for JavaScript. On two processors
  // this doubles the streams per second and saves a tenth of the CPU time.
  process.env['TOKIO_WORKER_THREADS'] ??= String(Math.max(1, availableParallelism() - 1));
  let cause: unknown;
  for (const name of packages) {
    try {
      const found = require(name);
      if (isEngine(found)) return found;
      cause = new Error(`${name} does not export the functions of the engine`);
    } catch (error) {
      cause ??= error;
    }
  }
  throw new SvcError('internal', {
    message: `The QUIC engine for ${platform}-${arch} is not installed: ${packages.join(' or ')} is needed. Install svcd again in the same way, with optional dependencies, then restart it. Until then, no other node can be reached.`,
    cause,
  });
}

/** Listens to nothing and connects to nothing. */
const NO_ENGINE: QuicEngine = {
  QuinnConfig: Object,
  Server: class {
    readonly #port: number;

    constructor(_config: object, _host: string, port: number) {
      this.#port = port;
    }

    inboundConnection(): Promise<EngineConnection> {
      return new Promise(() => {});
    }

    port(): number {
      return this.#port;
    }

    stats(): { readonly acceptedHandshakes: number } {
      return { acceptedHandshakes: 0 };
    }

    abort(): Promise<void> {
      return Promise.resolve();
    }
  },
  Client: class {
    outboundConnection(): Promise<EngineConnection> {
      return Promise.reject(new Error('no QUIC engine'));
    }

    abort(): void {}
  },
};

export interface FoundEngine {
  readonly engine: QuicEngine;
  /** The missing package and the remedy. Null if there is an engine. */
  readonly missing: string | null;
}

/** The engine for this machine. Without one, only other nodes are unreachable: the daemon and its own agents work. */
export function findEngine(own?: QuicEngine, load: () => QuicEngine = loadEngine): FoundEngine {
  try {
    return { engine: own ?? load(), missing: null };
  } catch (error) {
    return { engine: NO_ENGINE, missing: error instanceof Error ? error.message : String(error) };
  }
}

/* Converts keys and addresses between our form and the engine's, which is libp2p's. */

/** Protobuf `PrivateKey { type: Ed25519, data: 64 bytes }`; seed and public key follow. */
const PRIVATE_KEY_HEADER = Uint8Array.of(0x08, 0x01, 0x12, 0x40);

/** Multihash "identity" of 36 bytes, then protobuf `PublicKey { type: Ed25519, data: 32 bytes }`. */
const PEER_ID_HEADER = Uint8Array.of(0x00, 0x24, 0x08, 0x01, 0x12, 0x20);

/** An Ed25519 peer id has 52 characters. Longer text is not decoded. */
const MAX_PEER_ID_CHARS = 64;

const MULTIADDR = /^\/ip[46]\/([^/]+)\/udp\/(\d{1,5})\/quic-v1\/p2p\/([^/]+)$/;

/** A private key in the form of the engine. Secret. */
export function privateKeyProto(key: KeyPair): Uint8Array {
  return Buffer.concat([PRIVATE_KEY_HEADER, key.seed, key.publicKey]);
}

/** The Ed25519 key in a peer id, or null if it contains another kind of key. */
export function keyOfPeerId(peerId: string): Uint8Array | null {
  if (peerId.length > MAX_PEER_ID_CHARS) return null;
  try {
    const bytes = base58.decode(peerId);
    if (bytes.length !== PEER_ID_HEADER.length + PUBLIC_KEY_BYTES) return null;
    return PEER_ID_HEADER.every((byte, index) => bytes[index] === byte) ? bytes.slice(PEER_ID_HEADER.length) : null;
  } catch {
    return null;
  }
}

export interface Peer {
  readonly address: Address;
  readonly key: Uint8Array;
}

/** Address and proven key of the peer of a connection, or null if the text has another form. */
export function parsePeer(multiaddr: string): Peer | null {
  const [, host, port, peerId] = MULTIADDR.exec(multiaddr) ?? [];
  if (host === undefined || port === undefined || peerId === undefined) return null;
  const key = keyOfPeerId(peerId);
  const ip = canonicalIp(host);
  return key === null || ip === null ? null : { address: { host: ip, port: Number(port) }, key };
}
