/** Uploads and downloads of files, with their progress on a terminal. */
import { existsSync, openAsBlob } from 'node:fs';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { MAX_RANGE_ATTEMPTS, TRANSFER_SILENT_MS } from '../../foundation/domain/objects.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import { PrefixHashes } from '../../foundation/prefix-hashes.ts';
import { authorization, baseOf, errorOf, failureOf } from '../../operations/client.ts';
import type { AnswerOf } from './client.ts';
import type { CliContext } from './context.ts';
import type { CliIo } from './input.ts';
import { shortSize } from './reach-text.ts';
import type { ReceivedFile } from './received-file.ts';
import { safeLine } from './text.ts';

// Uploads local files. The daemon receives their bytes and no path.

export type Stored = AnswerOf<'objectPut'>;

/**
 * Uploads a local file of any size as an object.
 * @throws SvcError `not_found` if it cannot be read, `wrong_state` if it changes, and other errors of the daemon
 */
export async function uploadFile(context: CliContext, aid: string, file: string, name: string): Promise<Stored> {
  const answer = await uploadTo(context, `/agents/${aid}/cas?name=${encodeURIComponent(name)}`, file, name);
  return answer as Stored;
}

/**
 * Uploads the file of an offer.
 * @throws SvcError `not_found` if it cannot be read, `wrong_state` if it changes, and other errors of the daemon
 */
export async function uploadOffered(context: CliContext, aid: string, { id, name }: OfferAnswer, file: string) {
  await uploadTo(context, `/agents/${aid}/file-offers/${id}/content`, file, name);
}

async function uploadTo(context: CliContext, path: string, file: string, name: string): Promise<unknown> {
  using line = new ProgressLine(context.io, context.options.json === true || context.options.quiet === true);
  const speed = new TransferSpeed();
  const { token, headers, streamFetch = fetch } = context.connection;
  const base = baseOf(context.connection);
  let body: Blob;
  try {
    body = await openAsBlob(file);
  } catch (cause) {
    throw new SvcError('not_found', { message: `${file} cannot be read.`, cause });
  }
  const shown = (bytes: number): void => {
    const now = Date.now();
    speed.note(bytes, now);
    line.show(() => `storing  ${progressText(name, bytes, body.size, speed.perSecond())}`, now);
  };
  let hasChanged = false;
  const bytes = counted(body, shown, () => {
    hasChanged = true;
  });
  const response = await streamFetch(`${base}${path}`, {
    method: 'POST',
    headers: {
      ...headers,
      ...authorization(token),
      'content-type': 'application/octet-stream',
      'content-length': String(body.size),
    },
    body: ReadableStream.from(bytes),
    duplex: 'half',
    redirect: 'error',
    ...(context.io.signal === undefined ? {} : { signal: context.io.signal }),
  }).catch((error: unknown) => {
    if (context.io.signal?.aborted === true) throw new SvcError('cancelled');
    throw hasChanged
      ? new SvcError('wrong_state', { message: `${file} changed while it was read. Send it again.`, cause: error })
      : failureOf(error, base, {});
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw errorOf(response.status, answer);
  return answer;
}

/** Reads a file. @param passed called with the number of bytes so far @param failed called if it cannot be read on */
async function* counted(file: Blob, passed: (bytes: number) => void, failed: () => void): AsyncGenerator<Uint8Array> {
  let count = 0;
  try {
    for await (const bytes of file.stream()) {
      count += bytes.length;
      passed(count);
      yield bytes;
    }
  } catch (error) {
    failed();
    throw error;
  }
}

/** Polling interval for the progress of hashing, milliseconds. */
const HASH_POLL_MS = 500;

function isBelow(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
}

/**
 * The path of a file that the daemon can read itself, because it is in files_root.
 * @param path as typed; a path that does not exist is looked up in files_root
 * @returns null if the file must be uploaded
 */
export async function pathInRoot(context: CliContext, path: string): Promise<string | null> {
  const file = resolve(path);
  if (!existsSync(file)) return path;
  const { files_root: root } = await context.client.status();
  return root === '' || !isBelow(root, file) ? null : file;
}

/**
 * Makes a file an object: in place if it is in files_root, otherwise by uploading it.
 * @param path as typed; a path that does not exist is looked up in files_root
 * @throws SvcError `not_found` if it cannot be read, and other errors of the daemon
 */
export async function addFile(context: CliContext, aid: string, path: string, name?: string): Promise<Stored> {
  const named = await pathInRoot(context, path);
  if (named === null) return await uploadFile(context, aid, resolve(path), name ?? basename(path));
  const made = context.client.objectPut({ aid, path: named, ...(name === undefined ? {} : { name }) });
  return await whileHashed(context, aid, named, made);
}

/** Shows how far svcd has hashed a file in files_root, until it is an object. */
async function whileHashed<T>({ client, io, options }: CliContext, aid: string, path: string, made: Promise<T>) {
  using line = new ProgressLine(io, options.json === true || options.quiet === true);
  const ended = new AbortController();
  const end = (): void => ended.abort();
  made.then(end, end);
  const speed = new TransferSpeed();
  while (!ended.signal.aborted && line.isVisible) {
    await pause(HASH_POLL_MS, undefined, { signal: ended.signal }).catch(() => {});
    if (ended.signal.aborted) break;
    const { hashing = [] } = await client.objectList({ aid, limit: 1 }).catch(() => ({ hashing: [] }));
    const part = hashing.find((one) => basename(one.path) === basename(path));
    if (part === undefined) continue;
    const now = Date.now();
    speed.note(part.hashed_bytes, now);
    line.show(() => `hashing  ${progressText(basename(path), part.hashed_bytes, part.size, speed.perSecond())}`, now);
  }
  return await made;
}

// Progress of a transfer on one terminal line: part, speed and remaining time.

/** Window for the speed, milliseconds. */
const SPEED_WINDOW_MS = 5_000;
/** Shortest time after which a speed is shown, milliseconds. */
const SPEED_AFTER_MS = 500;
/** Refresh interval, milliseconds. */
const WRITE_EVERY_MS = 200;

function durationText(seconds: number): string {
  if (seconds < 60) return `${Math.ceil(seconds)} s`;
  if (seconds < 3600) return `${Math.ceil(seconds / 60)} min`;
  return `${Math.round(seconds / 3600)} h`;
}

/** Measures the recent speed. Times are milliseconds of one clock. */
export class TransferSpeed {
  #seen: { readonly at: number; readonly bytes: number }[] = [];

  /** @param bytes total so far */
  note(bytes: number, at: number): void {
    const last = this.#seen.at(-1);
    // The transfer restarted.
    if (last !== undefined && bytes < last.bytes) this.#seen = [];
    this.#seen.push({ at, bytes });
    while (this.#seen.length > 2 && at - (this.#seen[1]?.at ?? at) > SPEED_WINDOW_MS) this.#seen.shift();
  }

  /** Bytes per second, or null if unknown. */
  perSecond(): number | null {
    const [first, last] = [this.#seen[0], this.#seen.at(-1)];
    if (first === undefined || last === undefined || last.at - first.at < SPEED_AFTER_MS) return null;
    return ((last.bytes - first.bytes) * 1000) / (last.at - first.at);
  }
}

/** `plan.pdf  45 %  12 MB of 27 MB  4.1 MB/s  4 s left`. */
export function progressText(name: string, bytes: number, size: number, perSecond: number | null): string {
  const part = size === 0 ? 100 : Math.floor((100 * bytes) / size);
  const left = perSecond === null || perSecond <= 0 ? '' : `${durationText((size - bytes) / perSecond)} left`;
  const speed = perSecond === null ? '' : `${shortSize(perSecond)}/s`;
  return [safeLine(name), `${part} %`, `${shortSize(bytes)} of ${shortSize(size)}`, speed, left]
    .filter((word) => word !== '')
    .join('  ');
}

/** A terminal line that is rewritten. Silent in a pipe and with --quiet or --json. */
export class ProgressLine implements Disposable {
  readonly #io: CliIo;
  readonly #isSilent: boolean;
  #writtenAt = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(io: CliIo, isSilent: boolean) {
    this.#io = io;
    this.#isSilent = isSilent || io.stderr.isTTY !== true;
  }

  /** Whether texts are shown. */
  get isVisible(): boolean {
    return !this.#isSilent;
  }

  /** Shows a text, at most once per interval. @param now milliseconds of one clock */
  show(text: () => string, now: number): void {
    if (this.#isSilent || now - this.#writtenAt < WRITE_EVERY_MS) return;
    this.#writtenAt = now;
    this.#isShown = true;
    this.#io.stderr.write(`\r\u001b[2K${text()}`);
  }

  /** Clears the line. */
  clear(): void {
    if (this.#isShown) this.#io.stderr.write('\r\u001b[2K');
    this.#isShown = false;
    this.#writtenAt = Number.NEGATIVE_INFINITY;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}

// Downloads an offered file from the daemon to a local folder, and resumes after interruptions.

export type OfferAnswer = AnswerOf<'fileOfferGet'>;

/** Temporary failures: the sender or a daemon restarted, or a network changed. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['connect_failed', 'timeout', 'resolve_failed', 'network_unavailable', 'daemon_unreachable'] as const),
  ...(['network_not_ready', 'rate_limited'] as const),
]);
/** As `TRANSFER_SILENT_MS` before the first byte: the sender may have to hash a changed file. */
const SILENT_HEAD_MS = 30_000;
/** A silence is shown after this time, milliseconds. */
const SHOW_SILENCE_MS = 1_000;
/** Gives up after this time without data, milliseconds. */
const STALL_TIMEOUT_MS = 120_000;
/** First and longest pause between attempts, milliseconds. */
const RETRY_MS = 500;
const MAX_RETRY_MS = 8_000;

/** Why a transfer waits, by the error of the last attempt. */
const WAIT_CAUSES: Partial<Record<ErrorCode, string>> = {
  connect_failed: 'the connection to the sender was lost',
  timeout: 'the sender sends nothing, and is asked again',
  resolve_failed: 'the sender is not found',
  network_unavailable: 'this node reaches no other node',
  network_not_ready: 'this node is joining the network',
  daemon_unreachable: 'svcd does not answer',
  rate_limited: 'the sender limits requests',
};

function waitText(code: ErrorCode): string {
  return `waiting: ${WAIT_CAUSES[code] ?? code}`;
}

/**
 * Requests a part of an offer.
 * @param path of the API, with its query
 * @param stop ends the request
 * @throws SvcError the error of the daemon; `timeout` without an answer
 */
async function ask(
  context: CliContext,
  path: string,
  more: Readonly<Record<string, string>>,
  stop?: AbortSignal,
): Promise<Response> {
  const { token, headers, streamFetch = fetch } = context.connection;
  const base = baseOf(context.connection);
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), SILENT_HEAD_MS);
  const signals = [context.io.signal, stop, silent.signal].filter((one) => one !== undefined);
  const response = await streamFetch(`${base}${path}`, {
    headers: { ...headers, ...authorization(token), ...more },
    redirect: 'error',
    signal: AbortSignal.any(signals),
  })
    .catch((error: unknown) => {
      throw silent.signal.aborted ? new SvcError('timeout', { cause: error }) : failureOf(error, base, {});
    })
    .finally(() => clearTimeout(timer));
  if (response.ok || response.status === 416) return response;
  throw errorOf(response.status, await response.json().catch(() => undefined));
}

/** The hashes of an offered file. A silence ends the request. */
function hashesOf(context: CliContext, path: string, size: number) {
  const open = async (from: number, stop: AbortSignal): Promise<AsyncIterable<Uint8Array>> => {
    const { body } = await ask(context, `${path}/hashes?from=${from}`, {}, stop);
    return body ?? Readable.from([]);
  };
  const hashes = new PrefixHashes(open, size);
  const at = async (index: number): Promise<Buffer> => {
    const timer = setTimeout(() => hashes.close(), SILENT_HEAD_MS);
    try {
      return await hashes.at(index);
    } finally {
      clearTimeout(timer);
    }
  };
  return { at, [Symbol.dispose]: () => hashes.close() };
}

/** Callbacks of a download. */
interface DownloadEvents {
  readonly moved: () => void;
  /** @param ms time without data */
  readonly silent: (ms: number) => void;
  /** Called after each chunk. An exception ends the response. */
  readonly check: () => Promise<void>;
}

type Chunk = Awaited<ReturnType<ReadableStreamDefaultReader<Uint8Array>['read']>>;

/** The next chunk; `silent` if none arrives in time. */
async function nextChunk(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  silent: (ms: number) => void,
): Promise<Chunk | 'silent'> {
  const chunk = reader.read().catch((): Chunk => ({ done: true, value: undefined }));
  for (let ms = 0; ms < TRANSFER_SILENT_MS; ) {
    const waited = new AbortController();
    const next = await Promise.race([
      chunk,
      pause(SHOW_SILENCE_MS, 'silent' as const, { signal: waited.signal }).catch(() => 'silent' as const),
    ]);
    waited.abort();
    if (next !== 'silent') return next;
    ms += SHOW_SILENCE_MS;
    silent(ms);
  }
  return 'silent';
}

/**
 * Appends the body of one response. A connection that ends early is not an error.
 * @throws SvcError `timeout` if no more bytes arrive
 */
async function takeAll(response: Response, file: ReceivedFile, size: number, events: DownloadEvents): Promise<void> {
  // The local part is longer than the file, or the sender starts at the first byte.
  if (response.status === 416 || (response.status === 200 && file.length > 0)) await file.reset();
  if (response.status === 416 || response.body === null) {
    await response.body?.cancel();
    return;
  }
  const reader = response.body.getReader();
  try {
    for (;;) {
      const next = await nextChunk(reader, events.silent);
      if (next === 'silent') throw new SvcError('timeout', { message: 'The sender sends nothing.' });
      if (next.done || next.value === undefined) return;
      if (file.length + next.value.length > size)
        throw new SvcError('protocol_error', { message: 'The sender sent more bytes than it offered.' });
      await file.append(next.value);
      events.moved();
      await events.check();
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/** A range has other bytes than the sender named. They were deleted. */
class WrongRange extends SvcError {
  constructor(name: string) {
    super('protocol_error', { message: `The received bytes of ${name} do not match the offered file.` });
  }
}

/**
 * Downloads an offer into a file, from its present length, and verifies each range when it is complete.
 * @returns SHA-256 of the file, lower-case hex
 * @throws SvcError `protocol_error` if a range is wrong each time; `cancelled` if the command is interrupted; other
 *   errors of the daemon. A later attempt resumes
 */
export async function download(
  context: CliContext,
  aid: string,
  offer: OfferAnswer,
  file: ReceivedFile,
): Promise<string> {
  const { io, options } = context;
  const { name, size } = offer;
  const path = `/agents/${aid}/file-offers/${offer.id}`;
  const speed = new TransferSpeed();
  using line = new ProgressLine(io, options.json === true || options.quiet === true);
  using hashes = hashesOf(context, path, size);
  let lastAt = performance.now();
  let delay = RETRY_MS;
  const moved = (): void => {
    lastAt = performance.now();
    delay = RETRY_MS;
    speed.note(file.length, lastAt);
    line.show(() => progressText(name, file.length, size, speed.perSecond()), lastAt);
  };
  const shown = (what: string): void =>
    line.show(() => `${progressText(name, file.length, size, null)}  ${what}`, Date.now());
  const silent = (ms: number): void => shown(`waiting: no bytes for ${Math.round(ms / 1000)} s`);
  const check = async (): Promise<void> => {
    if (!(await file.verify(hashes, size))) throw new WrongRange(name);
  };
  for (let wrong = { at: -1, count: 0 }; ; ) {
    if (file.length > size) await file.reset();
    let failure = new SvcError('connect_failed', { message: 'The transfer was interrupted.' });
    try {
      if (file.length < size) {
        const range = file.length === 0 ? {} : { range: `bytes=${file.length}-` };
        await takeAll(await ask(context, `${path}/content`, range), file, size, { moved, silent, check });
      }
      if (file.length === size) await check();
      if (file.isWhole(size)) return file.digest();
    } catch (error) {
      if (error instanceof WrongRange) {
        wrong = { at: file.length, count: wrong.at === file.length ? wrong.count + 1 : 1 };
        if (wrong.count >= MAX_RANGE_ATTEMPTS) throw error;
        continue;
      }
      if (!(error instanceof SvcError) || !PASSING.has(error.code)) throw error;
      failure = error;
    }
    if (io.signal?.aborted === true) throw new SvcError('cancelled');
    if (performance.now() - lastAt > STALL_TIMEOUT_MS)
      throw new SvcError(failure.code, { message: `${failure.message} Run "svc receive" to resume.` });
    shown(waitText(failure.code));
    await pause(delay, undefined, io.signal === undefined ? {} : { signal: io.signal }).catch(() => {});
    delay = Math.min(MAX_RETRY_MS, delay * 2);
  }
}
