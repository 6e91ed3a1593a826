/**
 * Connections with the API token to a local daemon. Each connection must first prove that the daemon is at its other
 * end. See daemon-proof.ts.
 */
import { Agent, type ClientRequestArgs } from 'node:http';
import { Socket } from 'node:net';
import { hostname } from 'node:os';
import type { Duplex } from 'node:stream';
import { type Address, hostOfUrl, isLoopbackHost, mayBeThisMachine, parseAddress } from '../foundation/address.ts';
import { systemClock } from '../foundation/clock.ts';
import {
  acceptedProofs,
  DAEMON_CHALLENGE_HEADER,
  DAEMON_PROOF_HEADER,
  isUnguessable,
  requireProof,
  TOKEN_CHALLENGE_HEADER,
  tokenProofKey,
  UNGUESSABLE_TOKEN_CHARS,
  UNPROVEN,
  UNPROVEN_REASON,
} from '../foundation/daemon-proof.ts';
import { readDaemonInfo } from '../foundation/data-dir/daemon-info.ts';
import { detach } from '../foundation/detached.ts';
import { codeOf, SvcError } from '../foundation/errors.ts';
import { readInterfaces } from '../foundation/interfaces.ts';
import { canonicalIp } from '../foundation/ip.ts';

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

const SHORT_TOKEN = `a token of fewer than ${UNGUESSABLE_TOKEN_CHARS} characters requires its data directory: set SVCD_DATA_DIR, or choose a longer api_token`;

interface ProofKey {
  readonly key: Uint8Array;
  readonly challengeHeader: string;
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
    message: `The program at ${url.host} did not prove that it is the svcd for this token, so the token was not sent (${why}). Check the address and the token. Restart an older svcd. A forwarded port must have the same number as at the daemon.`,
    details: { base: url.origin, reason: UNPROVEN_REASON },
  });
}

/**
 * The key of the daemon at an address: from daemon.json if that contains the address, otherwise derived from the token.
 * Null if a proof would help to guess the token.
 */
async function keyFor(url: URL, { token, proofKey, dataDir = null }: DaemonSecrets): Promise<ProofKey | null> {
  if (proofKey !== undefined) return keyOfFile(proofKey);
  const info = dataDir === null ? null : readDaemonInfo(dataDir);
  const at = parseAddress(info?.api_addr ?? '');
  if (info?.proof_key !== undefined && at !== null && isAt(at, url)) return keyOfFile(info.proof_key);
  if (isUnguessable(token)) return { key: await tokenProofKey(token), challengeHeader: TOKEN_CHALLENGE_HEADER };
  return null;
}

function keyOfFile(text: string): ProofKey {
  return { key: Buffer.from(text, 'base64url'), challengeHeader: DAEMON_CHALLENGE_HEADER };
}

function isAt({ host, port }: Address, url: URL): boolean {
  return port === portOf(url) && (isLoopbackHost(host) || host === hostOfUrl(url));
}

function portOf(url: URL): number {
  return url.port === '' ? 80 : Number(url.port);
}

/**
 * A `node:http` agent for one daemon whose connections are used only after a proof. Undefined if no proof is needed:
 * without a token, with TLS, or for another machine.
 */
export function provenAgent(baseUrl: string, secrets: DaemonSecrets): Agent | undefined {
  const url = URL.parse(baseUrl);
  if (url === null || !needsProof(url, secrets.token)) return undefined;
  const agent = new Agent({ keepAlive: true, timeout: IDLE_MS });
  const create = agent.createConnection.bind(agent);
  const connect = async (options: ClientRequestArgs, done: Done): Promise<void> => {
    const proofKey = await keyFor(url, secrets);
    const made = create(options);
    if (!(made instanceof Socket)) throw new TypeError('not a socket');
    const accepted = (challenge: string, { remoteAddress }: Socket): string[] =>
      proofKey === null ? [] : acceptedProofs(proofKey.key, challenge, remoteAddress, portOf(url));
    const challengeHeader = proofKey?.challengeHeader ?? DAEMON_CHALLENGE_HEADER;
    const wanted = { challengeHeader, proofHeader: DAEMON_PROOF_HEADER, accepted, clock: systemClock };
    requireProof(made, wanted, (error, socket) => {
      if (error === null || codeOf(error) !== UNPROVEN) return done(error, socket);
      done(unproven(url, proofKey === null ? SHORT_TOKEN : error.message));
    });
  };
  agent.createConnection = (options, callback) => {
    const done = callback as Done | undefined;
    detach(connect(options, (error, socket) => done?.(error, socket)).catch((error: Error) => done?.(error)));
    return undefined;
  };
  return agent;
}
