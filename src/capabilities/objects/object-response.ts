/** Responds to an HTTP request for an object. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { READ_BYTES } from './fingerprint.ts';
import { matchesTag, parseRange } from './range.ts';
import type { OpenedBytes, OpenedObject } from './types.ts';

/** The entity tag of an object or an offer. Their bytes never change. */
export function tagOf(name: string): string {
  return `"${name}"`;
}

/** The head of a response. */
export interface ObjectHead {
  readonly status: 200 | 206 | 304 | 416;
  /** Size of the whole object, bytes. 0 if the holder did not have to send it. */
  readonly size: number;
  /** Start of the part. */
  readonly start: number;
  /** Length of the part, bytes. */
  readonly length: number;
  readonly name: string;
}

/** The headers of a response. Content of others must not render as a page of this daemon. */
export function headersOf({ status, size, start, length, name }: ObjectHead, tag: string) {
  const fixed = {
    etag: tagOf(tag),
    'accept-ranges': 'bytes',
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
  };
  if (status === 304) return fixed;
  if (status === 416) return { ...fixed, 'content-range': `bytes */${size}`, 'content-length': 0 };
  const part = status === 206 ? { 'content-range': `bytes ${start}-${start + length - 1}/${size}` } : {};
  return { ...fixed, 'content-disposition': disposition(name), 'content-length': length, ...part };
}

/** Resolves when a response can be written again or is closed. */
function drained(response: ServerResponse): Promise<void> {
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off('drain', settle).off('close', settle);
      resolve();
    };
    response.on('drain', settle).on('close', settle);
    if (response.destroyed) settle();
  });
}

/**
 * Resolves with the result of a read. Null if the response closes first: a file that is being hashed may not have the
 * bytes yet.
 */
function readUntilClosed<T>(response: ServerResponse, read: Promise<T>): Promise<T | null> {
  // With `Promise.race`, memory would grow with each read until the response closes.
  return new Promise((resolve, reject) => {
    const closed = (): void => resolve(null);
    response.once('close', closed);
    void read.then(resolve, reject).finally(() => response.off('close', closed));
  });
}

export interface AnswerOptions {
  /** Called with the position up to which the object was read, whenever the peer accepts more. */
  readonly moved?: (bytes: number) => void;
  /** Writes copy the buffer before their callback runs, so it can be reused. */
  readonly copies?: boolean;
}

/** Sends a part of a file. The last chunk is sent only if the file has not changed. */
async function sendPart(
  handle: OpenedBytes,
  isIntact: OpenedObject['isIntact'],
  { start, length }: ObjectHead,
  response: ServerResponse,
  { moved, copies = false }: AnswerOptions,
): Promise<void> {
  const free: Buffer[] = [];
  const end = start + length;
  for (let position = start; position < end && !response.destroyed; ) {
    const buffer = free.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES);
    const length = Math.min(READ_BYTES, end - position);
    const read = await readUntilClosed(response, handle.read(buffer, 0, length, position));
    if (read === null) return;
    const { bytesRead } = read;
    position += bytesRead;
    // Destroyed instead of ended, so that the client detects the missing bytes.
    if (bytesRead === 0 || (position === end && !(await isIntact()))) return void response.destroy();
    moved?.(position);
    const written = (error?: Error | null): void => {
      if (copies && !error) free.push(buffer);
    };
    if (!response.write(buffer.subarray(0, bytesRead), written)) await drained(response);
  }
  response.end();
}

/** The status and the part of the response. */
function choose(headers: IncomingMessage['headers'], { tag: named, size, name }: OpenedObject): ObjectHead {
  const tag = tagOf(named);
  const nothing = { size, start: 0, length: 0, name };
  if (matchesTag(headers['if-none-match'], tag)) return { ...nothing, status: 304 };
  const condition = headers['if-range'];
  const wish = condition === undefined || condition === tag ? parseRange(headers.range, size) : 'whole';
  if (wish === 'unsatisfiable') return { ...nothing, status: 416 };
  if (wish === 'whole') return { ...nothing, length: size, status: 200 };
  return { ...nothing, start: wish.start, length: wish.end + 1 - wish.start, status: 206 };
}

/**
 * Sends an object or the requested part. Resolves when it is sent or interrupted, with the file closed. If the file
 * changes meanwhile, the response is interrupted before its end.
 */
export async function sendObject(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  response: ServerResponse,
  object: OpenedObject,
  options: AnswerOptions = {},
): Promise<void> {
  await using handle = object.handle;
  const head = choose(headers, object);
  // Also prevents scripts.
  const policy = { 'content-security-policy': "sandbox; default-src 'none'" };
  response.writeHead(head.status, { ...headersOf(head, object.tag), ...policy });
  if (method === 'HEAD' || head.length === 0) response.end();
  else await sendPart(handle, object.isIntact, head, response, options);
}

// The name of an object in HTTP headers.

/** Makes browsers save the bytes instead of showing them (RFC 6266). */
export function disposition(name: string): string {
  // Percent-encodes everything except the characters that RFC 5987 allows.
  const encoded = encodeURIComponent(name).replace(/['()*!]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  return `attachment; filename*=UTF-8''${encoded}`;
}

/** The name in a header of this form, or undefined. */
export function nameInDisposition(header: string | undefined): string | undefined {
  const encoded = /^attachment; filename\*=UTF-8''([\w.~%-]{1,1024})$/.exec(header ?? '')?.[1];
  if (encoded === undefined) return undefined;
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}
