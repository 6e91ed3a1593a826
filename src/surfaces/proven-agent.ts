/**
 * Connections with the API token to a local daemon. Each connection must first prove that the daemon is at its other
 * end. See daemon-proof.ts.
 */
import { randomBytes } from 'node:crypto';
import { Agent, type ClientRequestArgs } from 'node:http';
import { Socket } from 'node:net';
import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import { type Address, hostOfUrl, isLoopbackHost, mayBeThisMachine, parseAddress } from '../foundation/address.ts';
import { systemClock } from '../foundation/clock.ts';
import {
  type AskProof,
  DAEMON_CHALLENGE_HEADER,
  DAEMON_PROOF_HEADER,
  daemonProof,
  isEqual,
  PROOF_PATH,
  proveToken,
  requireProof,
  TOKEN_CHALLENGE_HEADER,
  UNPROVEN,
  UNPROVEN_REASON,
} from '../foundation/daemon-proof.ts';
import { readDaemonInfo } from '../foundation/data-dir/daemon-info.ts';
import { detach } from '../foundation/detached.ts';
import { codeOf, SvcError } from '../foundation/errors.ts';
import { readInterfaces } from '../foundation/interfaces.ts';
import { canonicalIp } from '../foundation/ip.ts';
import { CHALLENGE_BYTES } from '../foundation/service-proof.ts';

/** Idle timeout, milliseconds. The daemon closes idle connections after 30 s. */
const IDLE_MS = 20_000;

export interface DaemonSecrets {
  /** The API token to send. */
  readonly token: string;
  /** The key that the daemon proves, base64url. Default: the key in daemon.json, or one derived from the token. */
  readonly proofKey?: string | undefined;
  /** Data directory of this user's daemon. Omitted or null if unknown. */
  readonly dataDir?: string | null;
}

type Done = (error: Error | null, socket?: Duplex) => void;

/** True if a token requires a proof first: plain HTTP to this machine. */
function needsProof(url: URL, token: string): boolean {
  return token !== '' && url.protocol === 'http:' && isThisMachine(hostOfUrl(url));
}

function isThisMachine(host: string): boolean {
  if (mayBeThisMachine(host) || host === hostname().toLowerCase()) return true;
  const ip = canonicalIp(host);
  return ip !== null && Object.values(readInterfaces() ?? {}).some((all) => all?.some(({ address }) => address === ip));
}

function unproven(url: URL, why: string): SvcError {
  return new SvcError('daemon_unreachable', {
    message: `The program at ${url.host} did not prove that it is the svcd for this token, so the token was not sent (${why}). Check the address and the token. To send it without a proof: svc --send-token.`,
    details: { base: url.origin, reason: UNPROVEN_REASON },
  });
}

/** The key in daemon.json, if that contains the address. Null for a client that can only prove the token. */
function keyOf(url: URL, { proofKey, dataDir = null }: DaemonSecrets): Uint8Array | null {
  if (proofKey !== undefined) return Buffer.from(proofKey, 'base64url');
  const info = dataDir === null ? null : readDaemonInfo(dataDir);
  const at = parseAddress(info?.api_addr ?? '');
  if (info === null || at === null || !isAt(at, url)) return null;
  return Buffer.from(info.proof_key, 'base64url');
}

function isAt({ host, port }: Address, url: URL): boolean {
  return port === portOf(url) && (isLoopbackHost(host) || host === hostOfUrl(url));
}

function portOf(url: URL): number {
  return url.port === '' ? 80 : Number(url.port);
}

/** Proves the key of daemon.json. */
async function proveKey(key: Uint8Array, ask: AskProof): Promise<boolean> {
  const challenge = randomBytes(CHALLENGE_BYTES).toString('hex');
  return isEqual(await ask(challenge), daemonProof(key, challenge));
}

/** Reported by a connection to a daemon that has no token. */
class NoTokenNeeded extends Error {
  override readonly name = 'NoTokenNeeded';
}

/** Connections that are used only after a proof. */
export class ProvenAgent extends Agent {
  readonly #url: URL;
  readonly #secrets: DaemonSecrets;
  /** The connection of `needsToken`, for the next request. */
  #spare: Socket | null = null;

  constructor(url: URL, secrets: DaemonSecrets) {
    super({ keepAlive: true, timeout: IDLE_MS });
    this.#url = url;
    this.#secrets = secrets;
  }

  /**
   * False if the daemon has no API token. Then requests must not carry one, and do not need this agent.
   * @throws SvcError `daemon_unreachable` without a proof; Node errors for a connection that cannot be made
   */
  async needsToken(): Promise<boolean> {
    if (this.#spare !== null || Object.keys(this.freeSockets).length > 0) return true;
    const { hostname: host } = this.#url;
    try {
      const spare = await this.#connect({ host: host.replace(/^\[|\]$/g, ''), port: portOf(this.#url) });
      this.#spare = spare;
      spare.once('close', () => {
        if (this.#spare === spare) this.#spare = null;
      });
      return true;
    } catch (error) {
      if (error instanceof NoTokenNeeded) return false;
      throw error;
    }
  }

  override createConnection(options: ClientRequestArgs, callback?: (error: Error | null, stream: Duplex) => void) {
    const done = callback as Done | undefined;
    const spare = this.#spare;
    this.#spare = null;
    const connected = spare === null || spare.destroyed ? this.#connect(options) : Promise.resolve(spare);
    detach(
      connected.then(
        (socket) => done?.(null, socket),
        (error: Error) => done?.(error instanceof NoTokenNeeded ? unproven(this.#url, 'it has no token') : error),
      ),
    );
    return undefined;
  }

  override destroy(): void {
    this.#spare?.destroy();
    super.destroy();
  }

  /** A connection after the proof. @throws NoTokenNeeded, SvcError `daemon_unreachable`, Node errors */
  #connect(options: ClientRequestArgs): Promise<Socket> {
    const key = keyOf(this.#url, this.#secrets);
    const { token } = this.#secrets;
    let hasToken = true;
    const prove = async (ask: AskProof): Promise<boolean> => {
      if (key !== null) return await proveKey(key, ask);
      const proven = await proveToken(token, ask);
      hasToken = proven !== 'no token';
      return proven === true;
    };
    const made = super.createConnection(options);
    if (!(made instanceof Socket)) throw new TypeError('not a socket');
    const { pathname, host } = this.#url;
    const wanted = {
      challengeHeader: key === null ? TOKEN_CHALLENGE_HEADER : DAEMON_CHALLENGE_HEADER,
      proofHeader: DAEMON_PROOF_HEADER,
      path: `${pathname.replace(/\/+$/, '')}${PROOF_PATH}`,
      host,
      prove,
      clock: systemClock,
    };
    return new Promise((resolve, reject) => {
      requireProof(made, wanted, (error, socket) => {
        if (socket !== undefined) return resolve(socket);
        if (!hasToken) return reject(new NoTokenNeeded());
        reject(codeOf(error) === UNPROVEN ? unproven(this.#url, error?.message ?? '') : error);
      });
    });
  }
}

/**
 * A `node:http` agent for one daemon whose connections are used only after a proof. Undefined if no proof is needed:
 * without a token, with TLS, or for another machine.
 */
export function provenAgent(baseUrl: string, secrets: DaemonSecrets): ProvenAgent | undefined {
  const url = URL.parse(baseUrl);
  return url === null || !needsProof(url, secrets.token) ? undefined : new ProvenAgent(url, secrets);
}
