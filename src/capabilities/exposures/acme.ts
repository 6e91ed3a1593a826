/**
 * Orders certificates from an ACME server (RFC 8555). The server verifies a host with a TLS connection to its port 443 (RFC
 * 8737), which passes through the entry like any other. See docs/decisions/0121-acme.md.
 */
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { certificateRequest, challengeCertificate, type TlsCertificate } from '../../foundation/certificate.ts';
import type { Clock } from '../../foundation/clock.ts';
import { pause } from '../../foundation/deadline.ts';
import { escapeUnsafe } from '../../foundation/display-text.ts';
import { SvcError } from '../../foundation/errors.ts';
import { isObject, readJson } from '../../foundation/json.ts';

/** Time for each request, milliseconds. */
const ANSWER_MS = 25_000;
/** Time between questions about an order, and for all of them, milliseconds. */
const POLL_MS = 1_000;
const ORDER_MS = 180_000;
/** Largest response, bytes. */
const MAX_RESPONSE_BYTES: number = 256 * 1024;
/** Repetitions after an expired nonce. */
const MAX_OLD_NONCES = 5;
/** Longest text of the server that is shown, characters. */
const MAX_SHOWN_CHARS = 400;
const ERROR_PREFIX = 'urn:ietf:params:acme:error:';

/** A new key of an account, in PEM. */
export function newAccountKey(): string {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' });
}

interface AcmeOptions {
  /** The URL of its directory. */
  readonly directory: string;
  /** PEM. */
  readonly accountKey: string;
  readonly clock: Clock;
  readonly fetch: typeof fetch;
}

interface Answer {
  readonly headers: Headers;
  readonly text: string;
}

type Fields = Readonly<Record<string, unknown>>;

/** One order at a time: each request uses the nonce of the response before it. */
export class AcmeServer {
  readonly #options: AcmeOptions;
  readonly #key: KeyObject;
  readonly #jwk: Fields;
  readonly #thumbprint: string;
  #directory: Fields | null = null;
  #account: string | null = null;
  #nonce: string | null = null;

  constructor(options: AcmeOptions) {
    this.#options = options;
    this.#key = createPrivateKey(options.accountKey);
    const { crv, kty, x, y } = createPublicKey(this.#key).export({ format: 'jwk' });
    // In this order (RFC 7638).
    this.#jwk = { crv, kty, x, y };
    this.#thumbprint = createHash('sha256').update(JSON.stringify(this.#jwk)).digest('base64url');
  }

  /**
   * Orders a certificate for a host.
   * @param prove answers connections of the server with this certificate until it resolves
   * @throws SvcError `certificate_refused`, `certificate_limited` with `retry_after_s`, `timeout`, `connect_failed`
   */
  async order(
    host: string,
    prove: (challenge: TlsCertificate, verified: () => Promise<void>) => Promise<void>,
    signal: AbortSignal,
  ): Promise<TlsCertificate> {
    await this.#signIn(signal);
    const begun = await this.#post(await this.#url('newOrder', signal), signal, {
      identifiers: [{ type: 'dns', value: host }],
    });
    const order = begun.headers.get('location') ?? '';
    const { authorizations, finalize } = fieldsOf(begun);
    for (const url of Array.isArray(authorizations) ? authorizations.map(String) : []) {
      const { status, challenges } = fieldsOf(await this.#post(url, signal));
      if (status === 'valid') continue;
      const list = Array.isArray(challenges) ? challenges.filter(isObject) : [];
      const challenge = list.find(({ type }) => type === 'tls-alpn-01');
      if (challenge === undefined) throw refused('It does not offer the challenge "tls-alpn-01", which svcd needs.');
      const authorization = `${String(challenge['token'])}.${this.#thumbprint}`;
      const digest = createHash('sha256').update(authorization).digest();
      await prove(challengeCertificate(host, digest), async () => {
        await this.#post(String(challenge['url']), signal, {});
        await this.#until(url, signal);
      });
    }
    const { csr, key } = certificateRequest(host);
    await this.#post(String(finalize), signal, { csr: csr.toString('base64url') });
    const { certificate } = await this.#until(order, signal);
    const { text: cert } = await this.#post(String(certificate), signal);
    return { cert, key };
  }

  async #signIn(signal: AbortSignal): Promise<void> {
    if (this.#account !== null) return;
    const url = await this.#url('newAccount', signal);
    const { headers } = await this.#post(url, signal, { termsOfServiceAgreed: true });
    this.#account = headers.get('location');
  }

  /** Asks until an object is valid. */
  async #until(url: string, signal: AbortSignal): Promise<Fields> {
    const { clock } = this.#options;
    for (const since = clock.monotonic(); clock.monotonic() - since < ORDER_MS; ) {
      const fields = fieldsOf(await this.#post(url, signal));
      const { status } = fields;
      if (status === 'valid') return fields;
      if (status === 'invalid') throw refused(reasonOf(fields));
      await pause(clock, POLL_MS, signal);
    }
    throw new SvcError('timeout', { message: 'The ACME server did not verify the public name in time.' });
  }

  async #url(name: string, signal: AbortSignal): Promise<string> {
    this.#directory ??= fieldsOf(await this.#fetch(this.#options.directory, { method: 'GET' }, signal));
    return String(this.#directory[name]);
  }

  /** Sends a signed request. @param payload null to read */
  async #post(url: string, signal: AbortSignal, payload: Fields | null = null): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const nonce = this.#nonce ?? (await this.#newNonce(signal));
      this.#nonce = null;
      const by = this.#account === null ? { jwk: this.#jwk } : { kid: this.#account };
      const protectedPart = encode({ alg: 'ES256', nonce, url, ...by });
      const payloadPart = payload === null ? '' : encode(payload);
      const signature = sign('sha256', Buffer.from(`${protectedPart}.${payloadPart}`), {
        key: this.#key,
        dsaEncoding: 'ieee-p1363',
      });
      const body = JSON.stringify({
        protected: protectedPart,
        payload: payloadPart,
        signature: signature.toString('base64url'),
      });
      const headers = { 'content-type': 'application/jose+json' };
      try {
        return await this.#fetch(url, { method: 'POST', body, headers }, signal);
      } catch (error) {
        const isOld = error instanceof SvcError && error.details?.['acme_error'] === 'badNonce';
        if (!isOld || attempt > MAX_OLD_NONCES) throw error;
      }
    }
  }

  async #newNonce(signal: AbortSignal): Promise<string> {
    await this.#fetch(await this.#url('newNonce', signal), { method: 'HEAD' }, signal);
    const nonce = this.#nonce;
    if (nonce === null) throw refused('It sent no nonce.');
    return nonce;
  }

  async #fetch(url: string, request: RequestInit, signal: AbortSignal): Promise<Answer> {
    const both = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]);
    let response: Response;
    let text: string;
    try {
      response = await this.#options.fetch(url, { ...request, signal: both, redirect: 'error' });
      text = await limitedText(response);
    } catch (cause) {
      signal.throwIfAborted();
      throw new SvcError('connect_failed', {
        message: `The ACME server ${URL.parse(this.#options.directory)?.host ?? ''} cannot be reached.`,
        cause,
      });
    }
    this.#nonce = response.headers.get('replay-nonce') ?? this.#nonce;
    if (!response.ok) throw failureOf(response, text);
    return { headers: response.headers, text };
  }
}

async function limitedText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  for await (const piece of response.body ?? []) {
    size += piece.length;
    if (size > MAX_RESPONSE_BYTES) throw new Error('the response is too large');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function encode(fields: Fields): string {
  return Buffer.from(JSON.stringify(fields)).toString('base64url');
}

function fieldsOf({ text }: Answer): Fields {
  const value = readJson(text);
  if (!isObject(value)) throw refused('Its answer is not valid.');
  return value;
}

/** The error for a response (RFC 8555, section 6.7). */
function failureOf(response: Response, text: string): SvcError {
  const problem = readJson(text);
  const { type, detail } = isObject(problem) ? problem : {};
  const acmeError = typeof type === 'string' && type.startsWith(ERROR_PREFIX) ? type.slice(ERROR_PREFIX.length) : null;
  const reason = typeof detail === 'string' ? detail : `It responded with status ${response.status}.`;
  if (acmeError !== 'rateLimited' && response.status !== 429) return refused(reason, { acme_error: acmeError });
  const wait = waitOf(response.headers.get('retry-after'));
  return new SvcError('certificate_limited', {
    message: `The ACME server limits certificates for this name or domain. svcd retries; the old certificate stays in use. Its reason: ${shown(reason)}`,
    details: wait === null ? {} : { retry_after_s: wait },
  });
}

/** Seconds of a `Retry-After` header. */
function waitOf(header: string | null): number | null {
  if (header === null) return null;
  const seconds = /^\d{1,8}$/.test(header) ? Number(header) : (Date.parse(header) - Date.now()) / 1000;
  return Number.isFinite(seconds) && seconds > 0 ? Math.ceil(seconds) : null;
}

/** The reason why an authorization is invalid: that of its challenge. */
function reasonOf({ challenges, error }: Fields): string {
  const errors = [
    error,
    ...(Array.isArray(challenges) ? challenges.map((one) => (isObject(one) ? one['error'] : null)) : []),
  ];
  const found = errors.find((one) => isObject(one) && typeof one['detail'] === 'string');
  return isObject(found) ? String(found['detail']) : 'It could not verify the name.';
}

function refused(reason: string, details: Fields = {}): SvcError {
  return new SvcError('certificate_refused', {
    message: `The ACME server gave no certificate. Its reason: ${shown(reason)}`,
    details,
  });
}

/** A text of the server. */
function shown(reason: string): string {
  return escapeUnsafe(reason).slice(0, MAX_SHOWN_CHARS);
}
