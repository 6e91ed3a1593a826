/** Reads objects of other agents. Holders are not trusted: the hash of the bytes must match. */
import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { OBJECT_ID_BYTES, rangeCount } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import { safeName } from '../../foundation/file-name.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { PrefixHash, PrefixHashes } from '../../foundation/prefix-hashes.ts';
import { nameInDisposition, type ObjectHead, tagOf } from './object-response.ts';
import { parseContentRange } from './range.ts';
import type { ObjectCaller, OfferedPart } from './types.ts';

/** Largest object that is read from another agent, bytes. */
export const MAX_REMOTE_OBJECT_BYTES = 1024 ** 4;

/** Request headers that are forwarded to the holder. */
const FORWARDED_HEADERS = ['range', 'if-range', 'if-none-match'] as const;

/** Bytes that an agent serves: an object, or a part of an offered file. */
export interface Resource {
  readonly path: string;
  /** The entity tag that the response must have. */
  readonly tag: string;
}

/** The object with an ID. */
export function objectResource(objectId: string): Resource {
  return { path: `/cas/${objectId}`, tag: objectId };
}

/** The file of an offer, or its hashes. */
export function offeredResource(offerId: string, part: OfferedPart): Resource {
  return part === 'file'
    ? { path: `/offers/${offerId}`, tag: offerId }
    : { path: `/offers/${offerId}/hashes`, tag: `${offerId}-hashes` };
}

export interface ReadRequest {
  /** The local agent that reads. */
  readonly local: Aid;
  readonly holder: Aid;
  readonly resource: Resource;
  readonly method: 'GET' | 'HEAD';
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly accessToken?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RemoteObject extends ObjectHead {
  /** Must be read or destroyed. Neither its length nor its bytes are verified. */
  readonly body: Readable;
  /** Frees the memory of a chunk of the body. It must not be used afterwards. */
  readonly release: (chunk: Buffer) => void;
}

function invalidResponse(what: string): SvcError {
  return new SvcError('protocol_error', { message: `Invalid response of the holder: ${what}.` });
}

/** The first value of each header, by lower-case name. */
function headerMap(raw: readonly string[]): Map<string, string> {
  const map = new Map<string, string>();
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i]?.toLowerCase() ?? '';
    if (!map.has(name)) map.set(name, raw[i + 1] ?? '');
  }
  return map;
}

function lengthOf(headers: ReadonlyMap<string, string>): number {
  const text = headers.get('content-length') ?? '';
  const length = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (!(length <= MAX_REMOTE_OBJECT_BYTES)) throw invalidResponse('its length is missing or too large');
  return length;
}

/** Parses the head of a response. @throws SvcError `not_found`, `gone`, `protocol_error` */
function partOf(status: number, headers: ReadonlyMap<string, string>, tag: string) {
  if (status === 404)
    throw new SvcError('not_found', { thing: 'object', message: 'The holder does not have this object.' });
  if (status === 410) throw new SvcError('gone', { message: "The holder's file of this object has changed." });
  if (status !== 200 && status !== 206 && status !== 304 && status !== 416) throw invalidResponse(`status ${status}`);
  if (headers.get('etag') !== tagOf(tag)) throw invalidResponse('it is for another object');
  if (status === 304) return { status, size: 0, start: 0, length: 0 } as const;
  const length = lengthOf(headers);
  if (status === 200) return { status, size: length, start: 0, length } as const;
  const range = headers.get('content-range');
  if (status === 416) {
    const size = /^bytes \*\/(\d{1,15})$/.exec(range ?? '')?.[1];
    if (size === undefined) throw invalidResponse('malformed range');
    return { status, size: Number(size), start: 0, length: 0 } as const;
  }
  const part = parseContentRange(range);
  if (part === null || part.end + 1 - part.start !== length || part.size > MAX_REMOTE_OBJECT_BYTES)
    throw invalidResponse('malformed range');
  return { status, size: part.size, start: part.start, length } as const;
}

export class RemoteObjects {
  readonly #caller: ObjectCaller;

  constructor({ caller }: { readonly caller: ObjectCaller }) {
    this.#caller = caller;
  }

  /**
   * Requests an object from a holder.
   * @throws SvcError `not_found`, `gone`, and the errors of calling an agent
   */
  async read(request: ReadRequest): Promise<RemoteObject> {
    const { local, holder, resource, method, headers, accessToken, signal } = request;
    const asked = FORWARDED_HEADERS.flatMap((name) => {
      const value = headers[name];
      return typeof value === 'string' ? [name, value] : [];
    });
    const call = { method, path: resource.path, headers: asked, body: null, accessToken, signal };
    const answer = await this.#caller.request(local, holder, call);
    try {
      const given = headerMap(answer.headers);
      const name = safeName(nameInDisposition(given.get('content-disposition')), resource.tag);
      const { body, release = () => {} } = answer;
      return { ...partOf(answer.status, given, resource.tag), name, body, release };
    } catch (error) {
      answer.body.destroy();
      throw error;
    }
  }
}

export interface OfferedFile {
  readonly local: Aid;
  /** The agent that made the offer. */
  readonly holder: Aid;
  /** The ID of the offer. */
  readonly id: string;
  /** Bytes. */
  readonly size: number;
  /** Ends all requests. */
  readonly signal: AbortSignal;
}

/** The prefix hashes of an offered file, from its sender. */
export function offeredHashes(
  remote: Pick<RemoteObjects, 'read'>,
  { local, holder, id, size, signal }: OfferedFile,
): PrefixHashes {
  const resource = offeredResource(id, 'hashes');
  return new PrefixHashes(async (from, stop) => {
    const start = from * OBJECT_ID_BYTES;
    const headers = start === 0 ? {} : { range: `bytes=${start}-` };
    const either = AbortSignal.any([signal, stop]);
    const { body, ...answer } = await remote.read({ local, holder, resource, method: 'GET', headers, signal: either });
    if (answer.start === start && answer.size === rangeCount(size) * OBJECT_ID_BYTES) {
      either.addEventListener('abort', () => body.destroy(), { once: true });
      return body;
    }
    body.destroy();
    throw invalidResponse('it has other hashes than requested');
  }, size);
}

/**
 * Yields the bytes of a whole object. The last chunk is withheld until the hash matches, so a complete object is a
 * correct one.
 */
export async function* verifiedBytes(body: AsyncIterable<Uint8Array>, objectId: string): AsyncGenerator<Uint8Array> {
  const hash = createHash('sha256');
  let held: Uint8Array | null = null;
  for await (const chunk of body) {
    if (held !== null) yield held;
    hash.update(chunk);
    held = chunk;
  }
  if (hash.digest('hex') !== objectId) throw invalidResponse('its bytes do not match the object ID');
  if (held !== null) yield held;
}

/** Like `verifiedBytes`, for an offered file. Ends at the first wrong range. @param size bytes */
export async function* verifiedFile(
  body: AsyncIterable<Uint8Array>,
  hashes: Pick<PrefixHashes, 'at'>,
  size: number,
): AsyncGenerator<Uint8Array> {
  const hash = new PrefixHash();
  const check = async (): Promise<void> => {
    if ((await hash.check(hashes, size)) !== null) throw invalidResponse('its bytes do not match the offer');
  };
  let held: Uint8Array | null = null;
  for await (const chunk of body) {
    if (held !== null) yield held;
    hash.update(chunk);
    await check();
    held = chunk;
  }
  await check();
  if (!hash.isConfirmed(size)) throw invalidResponse('it is incomplete');
  if (held !== null) yield held;
}
