/** Answers a request for an object over HTTP. */
import type { FileHandle } from 'node:fs/promises';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { READ_BYTES } from './fingerprint.ts';
import { disposition } from './object-name.ts';
import { namesTag, parseRange } from './range.ts';
import type { OpenedObject } from './registered-files.ts';

/** The entity tag of an object: its bytes never change. */
export function tagOf(objectId: string): string {
  return `"${objectId}"`;
}

/** What an answer says of an object, and of the part of it that follows. */
export interface ObjectHead {
  readonly status: 200 | 206 | 304 | 416;
  /** Length of the whole, bytes; 0 where the holder had no reason to say it. */
  readonly size: number;
  /** Where the part begins. */
  readonly start: number;
  /** Bytes that follow. */
  readonly length: number;
  readonly name: string;
}

/** The headers of an answer. What somebody wrote is never shown as a page of ours. */
export function headersOf({ status, size, start, length, name }: ObjectHead, objectId: string) {
  const fixed = {
    etag: tagOf(objectId),
    'accept-ranges': 'bytes',
    'content-type': 'application/octet-stream',
    'x-content-type-options': 'nosniff',
  };
  if (status === 304) return fixed;
  if (status === 416) return { ...fixed, 'content-range': `bytes */${size}`, 'content-length': 0 };
  const part = status === 206 ? { 'content-range': `bytes ${start}-${start + length - 1}/${size}` } : {};
  return { ...fixed, 'content-disposition': disposition(name), 'content-length': length, ...part };
}

/** Settles when a response takes more, or nothing any more. */
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

export interface AnswerOptions {
  /** Told up to which byte the object was read, whenever something was: which is when the other side takes it. */
  readonly moved?: (bytes: number) => void;
  /** What is written has been copied once its callback runs, so its memory can be used again. */
  readonly copies?: boolean;
}

/** Sends a part of a file; its last piece goes out only where the file is still what it was. */
async function sendPart(
  handle: FileHandle,
  isIntact: OpenedObject['isIntact'],
  { start, length }: ObjectHead,
  response: ServerResponse,
  { moved, copies = false }: AnswerOptions,
): Promise<void> {
  const free: Buffer[] = [];
  const end = start + length;
  for (let position = start; position < end && !response.destroyed; ) {
    const buffer = free.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, Math.min(READ_BYTES, end - position), position);
    position += bytesRead;
    // Not an end: what is missing must show.
    if (bytesRead === 0 || (position === end && !(await isIntact()))) return void response.destroy();
    moved?.(position);
    const written = (error?: Error | null): void => {
      if (copies && !error) free.push(buffer);
    };
    if (!response.write(buffer.subarray(0, bytesRead), written)) await drained(response);
  }
  response.end();
}

/** The part to send and its status. */
function choose(headers: IncomingMessage['headers'], { objectId, size, name }: OpenedObject): ObjectHead {
  const tag = tagOf(objectId);
  const nothing = { size, start: 0, length: 0, name };
  if (namesTag(headers['if-none-match'], tag)) return { ...nothing, status: 304 };
  const condition = headers['if-range'];
  const wish = condition === undefined || condition === tag ? parseRange(headers.range, size) : 'whole';
  if (wish === 'unsatisfiable') return { ...nothing, status: 416 };
  if (wish === 'whole') return { ...nothing, length: size, status: 200 };
  return { ...nothing, start: wish.start, length: wish.end + 1 - wish.start, status: 206 };
}

/**
 * Sends an object, or the part that is asked for; settles when it is through or broken off, with
 * the file closed. A file that changes meanwhile breaks the answer off before its end.
 */
export async function answerObject(
  { method, headers }: Pick<IncomingMessage, 'method' | 'headers'>,
  response: ServerResponse,
  object: OpenedObject,
  options: AnswerOptions = {},
): Promise<void> {
  await using handle = object.handle;
  const head = choose(headers, object);
  // It runs nothing either.
  const policy = { 'content-security-policy': "sandbox; default-src 'none'" };
  response.writeHead(head.status, { ...headersOf(head, object.objectId), ...policy });
  if (method === 'HEAD' || head.length === 0) response.end();
  else await sendPart(handle, object.isIntact, head, response, options);
}
