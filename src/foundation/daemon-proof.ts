/**
 * Lets a client verify the daemon before it sends the API token: after a crash, any program on the machine could listen
 * on the daemon's port. Two keys work. One is in daemon.json, which only the daemon's user can read. The other is the
 * token itself, for clients that cannot read the data directory: both ends prove that they know it without sending it.
 * See docs/decisions/0073-proven-api.md.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import type { Socket } from 'node:net';
import { fromHex, toHex } from './bytes.ts';
import type { Clock } from './clock.ts';
import { confirmations, type Exchange, SESSION_BYTES, SHARE_BYTES, type Share, sharedKey, shareOf } from './cpace.ts';
import { CHALLENGE_BYTES } from './service-proof.ts';
import { listen } from './stream-listeners.ts';

/** Headers of an `OPTIONS` request: a challenge for the key in daemon.json, and a step of the exchange with the token. */
export const DAEMON_CHALLENGE_HEADER = 'Svc-Daemon-Challenge';
export const TOKEN_CHALLENGE_HEADER = 'Svc-Token-Challenge';
/** Header of the response. */
export const DAEMON_PROOF_HEADER = 'Svc-Daemon-Proof';
/** Value of that header if the daemon has no token, so that the client must not send one. */
export const NO_TOKEN = 'none';
/** A path that every daemon serves. A reverse proxy forwards it, but not `*`. */
export const PROOF_PATH = '/health';

// The key in daemon.json: a challenge, and its HMAC.

const CHALLENGE = new RegExp(`^[0-9a-f]{${2 * CHALLENGE_BYTES}}$`);

/** True if the value of a challenge header is valid. */
export function isChallenge(value: string): boolean {
  return CHALLENGE.test(value);
}

/** The response to a challenge: `v1=<HMAC-SHA-256 in hex>`. */
export function daemonProof(key: Uint8Array, challenge: string): string {
  return `v1=${createHmac('sha256', key).update(`svcd daemon proof 1\n${challenge}`).digest('hex')}`;
}

// The token: a password-authenticated key exchange (cpace.ts). The client is the initiator and confirms first, so that a
// program that asks the daemon learns whether one guess is right, and nothing else. All values are hex.
// 1. Client: `1.<session>.<share>`. Daemon: `1.<share>`, or `none` without a token.
// 2. Client: `2.<session>.<share>.<confirmation>`. Daemon: `2.<confirmation>`, if the client's is right.

const CHANNEL = Buffer.from('svcd api token');
/** A confirmation is an HMAC-SHA-512. */
const CONFIRMATION_BYTES = 64;

const HEX = (bytes: number): string => `([0-9a-f]{${2 * bytes}})`;
const STEP = new RegExp(`^([12])\\.${HEX(SESSION_BYTES)}\\.${HEX(SHARE_BYTES)}(?:\\.${HEX(CONFIRMATION_BYTES)})?$`);

function exchangeOf(token: string, session: Uint8Array): Exchange {
  return { password: createHmac('sha256', 'svcd api token').update(token).digest(), channel: CHANNEL, session };
}

/** A step of a client. */
export interface TokenStep {
  readonly session: Uint8Array;
  readonly share: Uint8Array;
  /** Of the client, in the second step. */
  readonly confirmation: Uint8Array | null;
}

/** Null if the value of the header is malformed. */
export function parseTokenStep(value: string): TokenStep | null {
  const found = STEP.exec(value);
  if (found === null) return null;
  const [, kind, session = '', share = '', confirmation = ''] = found;
  const read = (text: string): Uint8Array => Buffer.from(text, 'hex');
  if ((kind === '2') !== (confirmation !== '')) return null;
  return { session: read(session), share: read(share), confirmation: kind === '2' ? read(confirmation) : null };
}

/**
 * The responses of a daemon to a step. It keeps nothing between the steps: its share follows from the step and from a
 * secret.
 * @param secret of this process
 * @param isRight tells whether the client knows the token, and throws after too many wrong guesses
 * @returns null if the step is invalid
 * @throws the error of `isRight`
 */
export function answerTokenStep(
  token: string,
  secret: Uint8Array,
  { session, share, confirmation }: TokenStep,
  isRight: (check: () => boolean) => void,
): string | null {
  const exchange = exchangeOf(token, session);
  const own = shareOf(exchange, createHmac('sha512', secret).update(session).update(share).digest());
  if (confirmation === null) return `1.${toHex(own.share)}`;
  const shares = [share, own.share] as const;
  const key = sharedKey(exchange, own, share, shares);
  if (key === null) return null;
  const { ofInitiator, ofResponder } = confirmations(exchange, key, shares);
  isRight(() => timingSafeEqual(ofInitiator, confirmation));
  return `2.${toHex(ofResponder)}`;
}

/** Asks the server: sends the value of a challenge header, and returns the value of the proof header, or ''. */
export type AskProof = (challenge: string) => Promise<string>;

/**
 * Checks that the server knows the token.
 * @returns `no token` if the daemon has none; false if it does not prove that it knows the token
 */
export async function proveToken(token: string, ask: AskProof): Promise<boolean | 'no token'> {
  const session = randomBytes(SESSION_BYTES);
  const exchange = exchangeOf(token, session);
  const own: Share = shareOf(exchange);
  const step = `${toHex(session)}.${toHex(own.share)}`;
  const first = await ask(`1.${step}`);
  if (first === NO_TOKEN) return 'no token';
  const share = first.startsWith('1.') ? fromHex(first.slice(2)) : null;
  if (share?.length !== SHARE_BYTES) return false;
  const shares = [own.share, share] as const;
  const key = sharedKey(exchange, own, share, shares);
  if (key === null) return false;
  const { ofInitiator, ofResponder } = confirmations(exchange, key, shares);
  return isEqual(await ask(`2.${step}.${toHex(ofInitiator)}`), `2.${toHex(ofResponder)}`);
}

/** True if both texts are equal, in constant time for texts of the same length. */
export function isEqual(given: string, wanted: string): boolean {
  const [one, other] = [Buffer.from(given), Buffer.from(wanted)];
  return one.length === other.length && timingSafeEqual(one, other);
}

// A new connection to a local server that must prove its identity before it receives anything else.

/** Time for the server to prove itself after the dial, in milliseconds. */
const PROOF_TIMEOUT_MS = 10_000;
/** Maximum size of a response head, in bytes. A reverse proxy adds headers. */
const MAX_PROOF_ANSWER_BYTES = 4096;
const HEAD_END = '\r\n\r\n';

/** Error code if the server does not prove itself. */
export const UNPROVEN = 'SVCD_UNPROVEN';

/** The `reason` in the error details for the client. */
export const UNPROVEN_REASON = 'unproven';

/** The connection is closed without sending anything; the code distinguishes this from other failures. */
class UnprovenServer extends Error {
  readonly code = UNPROVEN;
}

export interface ProofRequirement {
  readonly challengeHeader: string;
  readonly proofHeader: string;
  /** The target of the `OPTIONS` requests, and their `Host` header. */
  readonly path: string;
  readonly host: string;
  /** Asks the server until it has proved itself. False if it has not. */
  readonly prove: (ask: AskProof) => Promise<boolean>;
  readonly clock: Clock;
}

type Done = (error: Error | null, socket?: Socket) => void;

/** The value of the proof header; empty if the response has none, or has a body. */
function proofIn(answer: string, proofHeader: string): string {
  if (!answer.startsWith('HTTP/1.1 204 ') || answer.indexOf(HEAD_END) + HEAD_END.length !== answer.length) return '';
  return new RegExp(`\r\n${proofHeader}: *([!-~]+)\r\n`, 'i').exec(answer)?.[1] ?? '';
}

/** Requires a proof from the server on a connecting socket. Calls `done` once. */
export function requireProof(socket: Socket, wanted: ProofRequirement, done: Done): void {
  const { challengeHeader, proofHeader, path, host, prove, clock } = wanted;
  let answer = '';
  let waiting: ((proof: string) => void) | null = null;
  const connected = Promise.withResolvers<void>();
  let isOver = false;
  const end = (error: Error | null): void => {
    if (isOver) return;
    isOver = true;
    timer.cancel();
    stop();
    if (error === null) return done(null, socket);
    socket.destroy();
    done(error);
  };
  const over = (): void => end(new UnprovenServer('it closed the connection'));
  const ask: AskProof = async (challenge) => {
    await connected.promise;
    const { promise, resolve } = Promise.withResolvers<string>();
    waiting = resolve;
    answer = '';
    // A listener that inspects each connection may have destroyed it.
    if (!socket.destroyed)
      socket.write(`OPTIONS ${path} HTTP/1.1\r\nHost: ${host}\r\n${challengeHeader}: ${challenge}${HEAD_END}`);
    return await promise;
  };
  const take = (chunk: Buffer): void => {
    answer += chunk.toString('latin1');
    if (answer.length > MAX_PROOF_ANSWER_BYTES) return end(new UnprovenServer('its response is too long'));
    if (answer.includes(HEAD_END)) waiting?.(proofIn(answer, proofHeader));
  };
  const timer = clock.after(PROOF_TIMEOUT_MS, () => end(new UnprovenServer('it does not answer')));
  const stop = listen(socket, {
    connect: () => connected.resolve(),
    data: take,
    error: end,
    close: over,
    end: over,
  });
  prove(ask).then(
    (isProven) => end(isProven ? null : new UnprovenServer('the proof is wrong')),
    (error: unknown) => end(error instanceof Error ? error : new UnprovenServer('the proof failed')),
  );
}
