/** Answers a request for an object over HTTP. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { READ_BYTES } from './fingerprint.ts';
import { disposition } from './object-name.ts';
import { type ByteRange, namesTag, parseRange } from './range.ts';
import type { OpenedObject } from './registered-files.ts';

/** The entity tag of an object: its bytes never change. */
export function tagOf(objectId: string): string {
  return `"${objectId}"`;
}

/** What somebody wrote is never shown as a page of ours, and runs nothing. */
const SAFE_HEADERS = {
  'content-type': 'application/octet-stream',
  'content-security-policy': "sandbox; default-src 'none'",
  'x-content-type-options': 'nosniff',
} as const;

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
  /** Told whenever something was read, which is when the other side takes it. */
  readonly moved?: () => void;
  /** What is written has been copied once its callback runs, so its memory can be used again. */
  readonly copies?: boolean;
}

/** Sends a part of a file; its last piece goes out only where the file is still what it was. */
async function sendPart(
  { handle, isIntact }: OpenedObject,
  { start, end }: ByteRange,
  response: ServerResponse,
  { moved, copies = false }: AnswerOptions,
): Promise<void> {
  const free: Buffer[] = [];
  for (let position = start; position <= end && !response.destroyed; ) {
    const buffer = free.pop() ?? Buffer.allocUnsafeSlow(READ_BYTES);
    const { bytesRead } = await handle.read(buffer, 0, Math.min(READ_BYTES, end + 1 - position), position);
    position += bytesRead;
    // Not an end: what is missing must show.
    if (bytesRead === 0 || (position > end && !(await isIntact()))) return void response.destroy();
    moved?.();
    const written = (error?: Error | null): void => {
      if (copies && !error) free.push(buffer);
    };
    if (!response.write(buffer.subarray(0, bytesRead), written)) await drained(response);
  }
  response.end();
}

/** The part to send and its status; null where nothing is sent. */
function choose(headers: IncomingMessage['headers'], size: number, tag: string) {
  if (namesTag(headers['if-none-match'], tag)) return { status: 304, range: null };
  const condition = headers['if-range'];
  const wish = condition === undefined || condition === tag ? parseRange(headers.range, size) : 'whole';
  if (wish === 'unsatisfiable') return { status: 416, range: null };
  if (wish === 'whole') return { status: 200, range: { start: 0, end: size - 1 } };
  return { status: 206, range: wish };
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
  const { objectId, name, size, handle } = object;
  try {
    const tag = tagOf(objectId);
    const { status, range } = choose(headers, size, tag);
    const fixed = { etag: tag, 'accept-ranges': 'bytes', ...SAFE_HEADERS };
    if (range === null) {
      const whole = status === 416 ? { 'content-range': `bytes */${size}`, 'content-length': 0 } : {};
      response.writeHead(status, { ...fixed, ...whole }).end();
      return;
    }
    response.writeHead(status, {
      ...fixed,
      'content-disposition': disposition(name),
      'content-length': range.end + 1 - range.start,
      ...(status === 206 ? { 'content-range': `bytes ${range.start}-${range.end}/${size}` } : {}),
    });
    if (method === 'HEAD' || size === 0) response.end();
    else await sendPart(object, range, response, options);
  } finally {
    await handle.close();
  }
}
