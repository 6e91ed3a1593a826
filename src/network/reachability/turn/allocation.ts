/** An allocation at a TURN server (RFC 8656): a public address that relays datagrams to this node. */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { Address } from '../../../foundation/address.ts';
import { toHex } from '../../../foundation/bytes.ts';
import type { Clock } from '../../../foundation/clock.ts';
import type { TurnServer } from '../../../foundation/config/schema.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { memberOf } from '../../../foundation/json.ts';
import { every, type RepeatingTask } from '../../../foundation/repeat.ts';
import {
  ATTRIBUTE,
  attributeOf,
  decodeErrorCode,
  decodeStun,
  decodeXorAddress,
  encodeStun,
  encodeXorAddress,
  FAILURE,
  hasValidIntegrity,
  STUN,
  type StunMessage,
  SUCCESS,
  TRANSACTION_BYTES,
  uint32,
} from './stun.ts';

/* Credentials of a TURN server. */

/** Validity of a username that is derived from a shared secret, seconds. */
const DERIVED_TTL_S = 24 * 3600;
/** Largest answer of the credential service (characters), and how long to wait for it (milliseconds). */
const MAX_ANSWER_CHARS = 16_384;
const ANSWER_TIMEOUT_MS = 5_000;

export interface TurnCredentials {
  readonly username: string;
  readonly password: string;
}

async function fetchCredentials(url: string): Promise<TurnCredentials> {
  const response = await fetch(url, { redirect: 'error', signal: AbortSignal.timeout(ANSWER_TIMEOUT_MS) });
  const text = await response.text();
  const answer: unknown = response.ok && text.length <= MAX_ANSWER_CHARS ? JSON.parse(text) : null;
  const [username, password] = [memberOf(answer, 'username'), memberOf(answer, 'password')];
  if (typeof username === 'string' && typeof password === 'string') return { username, password };
  throw new SvcError('connect_failed', {
    message: 'The service of credential_url returned no username and password. Check turn_servers.',
  });
}

/**
 * The current username and password: static, derived from a shared secret (draft-uberti-behave-turn-rest), or fetched.
 * @throws SvcError `connect_failed`
 */
export async function getCredentials(server: TurnServer, clock: Clock): Promise<TurnCredentials> {
  const { credential_type: type, username, credential } = server;
  if (type === 'static') return { username, password: credential };
  if (type === 'hmac') {
    const until = Math.floor(clock.now() / 1000) + DERIVED_TTL_S;
    const name = username === '' ? String(until) : `${until}:${username}`;
    return { username: name, password: createHmac('sha1', credential).update(name).digest('base64') };
  }
  try {
    return await fetchCredentials(server.credential_url);
  } catch (cause) {
    throw cause instanceof SvcError ? cause : new SvcError('connect_failed', { cause });
  }
}

/** The key of long-term credentials (RFC 8489, 9.2.2). */
export function longTermKey({ username, password }: TurnCredentials, realm: string): Uint8Array {
  return new Uint8Array(createHash('md5').update(`${username}:${realm}:${password}`).digest());
}

/** Timeout of the first transmission, milliseconds. It doubles with each retransmission (RFC 8489, 6.2.1). */
const FIRST_TRY_MS = 300;
const TRIES = 4;
/** Lifetime of a permission (RFC 8656, 9), and how often it is renewed, milliseconds. */
const PERMISSION_MS: number = 5 * 60_000;
const PERMISSION_RENEWAL_MS: number = 4 * 60_000;
/** Pause before a renewal that timed out is retried, milliseconds. */
const RENEWAL_RETRY_MS = 10_000;
/** Lifetime to assume if the server does not state one, seconds. */
const DEFAULT_LIFETIME_S = 600;
/** Minimum interval between renewals of an allocation, milliseconds. */
const MIN_RENEWAL_MS = 30_000;
/** IP protocol number of UDP. */
const UDP = 17;
/** Maximum number of repeats of one request, for authentication or because of a stale nonce. */
const MAX_CHALLENGES = 3;

/** Error codes that end an attempt (RFC 8656, 19). */
const REFUSALS: Readonly<Record<number, string>> = {
  401: 'The TURN server rejected the credentials. Check username and credential.',
  403: 'The TURN server forbids this request.',
  437: 'The TURN server has no matching allocation for this port.',
  441: 'The TURN server rejected the credentials. Check username and credential.',
  442: 'The TURN server does not relay UDP.',
  486: 'The quota of this account at the TURN server is used up.',
  508: 'The TURN server has no capacity.',
};

type Attributes = StunMessage['attributes'];

interface Answer {
  readonly message: StunMessage;
  readonly bytes: Uint8Array;
}

/** The part of a UDP socket that an allocation uses. */
export interface DatagramSocket {
  on(
    event: 'message',
    listener: (datagram: Uint8Array, from: { readonly address: string; readonly port: number }) => void,
  ): unknown;
  on(event: 'error', listener: () => void): unknown;
  send(datagram: Uint8Array, port: number, host: string, sent: () => void): void;
}

interface AllocationDependencies {
  readonly clock: Clock;
  /** Must be bound. Datagrams from other addresses than the server are ignored. */
  readonly socket: DatagramSocket;
  readonly server: Address;
  readonly credentials: TurnCredentials;
  /** Called with the datagrams that peers send. */
  readonly received: (datagram: Uint8Array, from: Address) => void;
}

export class TurnAllocation {
  readonly #deps: AllocationDependencies;
  readonly #pending = new Map<string, (answer: Answer) => void>();
  readonly #repeating: RepeatingTask[] = [];
  #realm: Uint8Array | null = null;
  #nonce: Uint8Array = new Uint8Array();
  #key: Uint8Array | null = null;
  readonly #lost = Promise.withResolvers<void>();
  #isClosed = false;

  constructor(dependencies: AllocationDependencies) {
    this.#deps = dependencies;
    const { socket, server } = dependencies;
    socket.on('message', (datagram, from) => {
      if (from.address === server.host && from.port === server.port) this.#onDatagram(datagram);
    });
    socket.on('error', () => this.#lose());
  }

  /**
   * Settles when the allocation is lost: the server forgot it, for example because of a restart, or it expired because
   * the server did not answer. A new allocation has another address.
   */
  get lost(): Promise<void> {
    return this.#lost.promise;
  }

  /**
   * Requests an allocation.
   * @throws SvcError `connect_failed` with the server's reason, `timeout`
   */
  async open(): Promise<Address> {
    const requested: Attributes = [[ATTRIBUTE.requestedTransport, Uint8Array.of(UDP, 0, 0, 0)]];
    const answer = await this.#request(STUN.allocate, requested);
    const relayed = decodeXorAddress(attributeOf(answer, ATTRIBUTE.xorRelayedAddress) ?? new Uint8Array());
    if (relayed === null)
      throw new SvcError('connect_failed', { message: 'The TURN server returned no IPv4 address.' });
    const lifetimeMs = this.#lifetimeOf(answer);
    const renewalMs = Math.max(MIN_RENEWAL_MS, lifetimeMs / 2);
    this.#renewPeriodically(
      () => this.#request(STUN.refresh, [[ATTRIBUTE.lifetime, uint32(DEFAULT_LIFETIME_S)]]),
      renewalMs,
      lifetimeMs,
    );
    return relayed;
  }

  /**
   * Permits datagrams from a host, from any port, until the allocation ends.
   * @throws SvcError as `open`
   */
  async permit(host: string): Promise<void> {
    const ask = () =>
      this.#request(STUN.createPermission, [[ATTRIBUTE.xorPeerAddress, encodeXorAddress({ host, port: 0 })]]);
    await ask();
    this.#renewPeriodically(ask, PERMISSION_RENEWAL_MS, PERMISSION_MS);
  }

  /** Sends a datagram to a permitted peer. It may be lost. */
  send(datagram: Uint8Array, to: Address): void {
    if (this.#isClosed) return;
    const attributes: Attributes = [
      [ATTRIBUTE.xorPeerAddress, encodeXorAddress(to)],
      [ATTRIBUTE.data, datagram],
    ];
    const type = STUN.send | 0x10;
    this.#write(encodeStun({ type, transaction: randomBytes(TRANSACTION_BYTES), attributes }));
  }

  /** Ends the allocation. */
  close(): void {
    if (this.#isClosed) return;
    if (this.#key !== null) this.#write(this.#encode(STUN.refresh, [[ATTRIBUTE.lifetime, uint32(0)]]).bytes);
    this.#end();
  }

  #end(): void {
    this.#isClosed = true;
    for (const repeating of this.#repeating.splice(0)) repeating.stop();
    this.#pending.clear();
  }

  #lose(): void {
    if (this.#isClosed) return;
    this.#end();
    this.#lost.resolve();
  }

  /** Renews periodically. If the server does not answer, retries until the lifetime is over. */
  #renewPeriodically(renew: () => Promise<unknown>, periodMs: number, lastsMs: number): void {
    if (this.#isClosed) return;
    const { clock } = this.#deps;
    let until = clock.monotonic() + lastsMs;
    const again = async (): Promise<number> => {
      try {
        await renew();
        until = clock.monotonic() + lastsMs;
        return periodMs;
      } catch (error) {
        const isSilent = error instanceof SvcError && error.code === 'timeout';
        if (!isSilent || clock.monotonic() >= until) this.#lose();
        return RENEWAL_RETRY_MS;
      }
    };
    const onError = (): void => {};
    this.#repeating.push(every(clock, { firstMs: periodMs, periodMs, onError }, again));
  }

  /** Milliseconds. */
  #lifetimeOf(answer: StunMessage): number {
    const lifetime = attributeOf(answer, ATTRIBUTE.lifetime);
    const seconds = lifetime?.length === 4 ? Buffer.from(lifetime).readUInt32BE() : DEFAULT_LIFETIME_S;
    return Math.min(seconds, DEFAULT_LIFETIME_S) * 1000;
  }

  #write(bytes: Uint8Array): void {
    const { socket, server } = this.#deps;
    socket.send(bytes, server.port, server.host, () => {});
  }

  #encode(method: number, attributes: Attributes): { readonly bytes: Uint8Array; readonly transaction: Uint8Array } {
    const transaction = new Uint8Array(randomBytes(TRANSACTION_BYTES));
    const realm = this.#realm;
    const authentication: Attributes =
      realm === null
        ? []
        : [
            [ATTRIBUTE.username, new TextEncoder().encode(this.#deps.credentials.username)],
            [ATTRIBUTE.realm, realm],
            [ATTRIBUTE.nonce, this.#nonce],
          ];
    const message = { type: method, transaction, attributes: [...attributes, ...authentication] };
    return { bytes: encodeStun(message, this.#key), transaction };
  }

  async #request(method: number, attributes: Attributes): Promise<StunMessage> {
    for (let challenges = 0; ; challenges++) {
      const hadKey = this.#key !== null;
      const { message } = await this.#transact(method, attributes);
      if (message.type === (method | SUCCESS)) return message;
      const code = decodeErrorCode(attributeOf(message, ATTRIBUTE.errorCode)) ?? 500;
      const isChallenge = code === 438 || (code === 401 && !hadKey);
      if (!isChallenge || challenges >= MAX_CHALLENGES || !this.#acceptChallenge(message))
        throw new SvcError('connect_failed', {
          message: REFUSALS[code] ?? `The TURN server refused with error ${code}.`,
          details: { code },
        });
    }
  }

  /** Stores the realm and nonce of a challenge. */
  #acceptChallenge(message: StunMessage): boolean {
    const nonce = attributeOf(message, ATTRIBUTE.nonce);
    const realm = attributeOf(message, ATTRIBUTE.realm) ?? this.#realm;
    if (nonce === undefined || realm === null) return false;
    this.#nonce = nonce;
    this.#realm = realm;
    this.#key = longTermKey(this.#deps.credentials, new TextDecoder().decode(realm));
    return true;
  }

  /** Sends a request and retransmits it until it is answered. */
  async #transact(method: number, attributes: Attributes): Promise<Answer> {
    const { bytes, transaction } = this.#encode(method, attributes);
    const id = toHex(transaction);
    const answered = Promise.withResolvers<Answer | null>();
    this.#pending.set(id, answered.resolve);
    try {
      for (let tried = 0; tried < TRIES && !this.#isClosed; tried++) {
        this.#write(bytes);
        const timer = Promise.withResolvers<null>();
        const wait = this.#deps.clock.after(FIRST_TRY_MS * 2 ** tried, () => timer.resolve(null));
        const answer = await Promise.race([answered.promise, timer.promise]);
        wait.cancel();
        if (answer !== null) return answer;
      }
      throw new SvcError('timeout', { message: 'The TURN server does not answer.' });
    } finally {
      this.#pending.delete(id);
    }
  }

  #onDatagram(bytes: Uint8Array): void {
    const message = decodeStun(bytes);
    if (message === null || this.#isClosed) return;
    if (message.type === (STUN.data | 0x10)) return this.#onData(message);
    const waiting = this.#pending.get(toHex(message.transaction));
    // Success responses must prove knowledge of the password. Error responses cannot: they are sent before
    // authentication.
    const isSuccess = (message.type & FAILURE) === SUCCESS;
    if (isSuccess && (this.#key === null || !hasValidIntegrity(bytes, this.#key))) return;
    waiting?.({ message, bytes });
  }

  #onData(message: StunMessage): void {
    const from = decodeXorAddress(attributeOf(message, ATTRIBUTE.xorPeerAddress) ?? new Uint8Array());
    const datagram = attributeOf(message, ATTRIBUTE.data);
    if (from !== null && datagram !== undefined) this.#deps.received(datagram, from);
  }
}
