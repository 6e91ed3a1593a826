/** Uploads and downloads of files, with their progress on a terminal. */
import { existsSync, openAsBlob } from 'node:fs';
import { basename, isAbsolute, relative, resolve, sep } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { TRANSFER_SILENT_MS } from '../../foundation/domain/objects.ts';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
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
 * Uploads a local file of any size.
 * @throws SvcError `not_found` if it cannot be read, and other errors of the daemon
 */
export async function uploadFile(context: CliContext, aid: string, file: string, name: string): Promise<Stored> {
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
  const response = await streamFetch(`${base}/agents/${aid}/cas?name=${encodeURIComponent(name)}`, {
    method: 'POST',
    headers: {
      ...headers,
      ...authorization(token),
      'content-type': 'application/octet-stream',
      'content-length': String(body.size),
    },
    body: counted(body.stream(), (bytes) => {
      const now = Date.now();
      speed.note(bytes, now);
      line.show(() => `storing  ${progressText(name, bytes, body.size, speed.perSecond())}`, now);
    }),
    duplex: 'half',
    redirect: 'error',
  }).catch((error: unknown) => {
    throw failureOf(error, base, {});
  });
  const answer: unknown = await response.json().catch(() => undefined);
  if (!response.ok) throw errorOf(response.status, answer);
  return answer as Stored;
}

/** Passes bytes on. @param passed called with their number so far */
function counted(bytes: ReadableStream<Uint8Array>, passed: (bytes: number) => void): ReadableStream<Uint8Array> {
  let count = 0;
  return bytes.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        count += chunk.length;
        passed(count);
        controller.enqueue(chunk);
      },
    }),
  );
}

function isBelow(folder: string, path: string): boolean {
  const inside = relative(folder, path);
  return inside !== '' && inside !== '..' && !inside.startsWith(`..${sep}`) && !isAbsolute(inside);
}

/**
 * Makes a file an object: in place if it is in files_root, otherwise by uploading it.
 * @param path as typed; a path that does not exist is looked up in files_root
 * @throws SvcError `not_found` if it cannot be read, and other errors of the daemon
 */
export async function addFile(context: CliContext, aid: string, path: string, name?: string): Promise<Stored> {
  const file = resolve(path);
  const { files_root: root } = await context.client.status();
  if (existsSync(file) && (root === '' || !isBelow(root, file)))
    return await uploadFile(context, aid, file, name ?? basename(file));
  const named = existsSync(file) ? file : path;
  return await context.client.objectPut({ aid, path: named, ...(name === undefined ? {} : { name }) });
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
/** Number of attempts after a wrong hash. */
const MAX_WRONG = 2;
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

/** Requests the missing bytes. @throws SvcError the error of the daemon; `timeout` without an answer */
async function ask(context: CliContext, aid: string, id: string, from: number): Promise<Response> {
  const { token, headers, streamFetch = fetch } = context.connection;
  const base = baseOf(context.connection);
  const { signal } = context.io;
  const silent = new AbortController();
  const timer = setTimeout(() => silent.abort(), SILENT_HEAD_MS);
  const response = await streamFetch(`${base}/agents/${aid}/file-offers/${id}/content`, {
    headers: {
      ...headers,
      ...authorization(token),
      ...(from === 0 ? {} : { range: `bytes=${from}-` }),
    },
    redirect: 'error',
    signal: signal === undefined ? silent.signal : AbortSignal.any([signal, silent.signal]),
  })
    .catch((error: unknown) => {
      throw silent.signal.aborted ? new SvcError('timeout', { cause: error }) : failureOf(error, base, {});
    })
    .finally(() => clearTimeout(timer));
  if (response.ok || response.status === 416) return response;
  throw errorOf(response.status, await response.json().catch(() => undefined));
}

/** What a download reports. */
interface DownloadEvents {
  readonly moved: () => void;
  /** @param ms time without data */
  readonly silent: (ms: number) => void;
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
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/**
 * Downloads an offer into a file, from its present length.
 * @throws SvcError `protocol_error` if the bytes do not match the offer, which deletes them; `cancelled` if the command
 *   is interrupted; other errors of the daemon. A later attempt resumes
 */
export async function download(
  context: CliContext,
  aid: string,
  offer: OfferAnswer,
  file: ReceivedFile,
): Promise<void> {
  const { io, options } = context;
  const speed = new TransferSpeed();
  using line = new ProgressLine(io, options.json === true || options.quiet === true);
  let lastAt = performance.now();
  let delay = RETRY_MS;
  const moved = (): void => {
    lastAt = performance.now();
    delay = RETRY_MS;
    speed.note(file.length, lastAt);
    line.show(() => progressText(offer.name, file.length, offer.size, speed.perSecond()), lastAt);
  };
  const shown = (what: string): void =>
    line.show(() => `${progressText(offer.name, file.length, offer.size, null)}  ${what}`, Date.now());
  const silent = (ms: number): void => shown(`waiting: no bytes for ${Math.round(ms / 1000)} s`);
  for (let wrong = 0; ; ) {
    if (file.length > offer.size) await file.reset();
    if (file.length === offer.size) {
      if (file.is(offer.object_id)) return;
      await file.reset();
      // The first mismatch may come from an old partial file.
      if (++wrong < MAX_WRONG) continue;
      await file.discard();
      throw new SvcError('protocol_error', {
        message: `The received bytes of ${offer.name} do not match the offered file.`,
      });
    }
    let failure = new SvcError('connect_failed', { message: 'The transfer was interrupted.' });
    try {
      await takeAll(await ask(context, aid, offer.id, file.length), file, offer.size, { moved, silent });
    } catch (error) {
      if (!(error instanceof SvcError) || !PASSING.has(error.code)) throw error;
      failure = error;
    }
    if (io.signal?.aborted === true) throw new SvcError('cancelled');
    if (file.length === offer.size) continue;
    if (performance.now() - lastAt > STALL_TIMEOUT_MS)
      throw new SvcError(failure.code, { message: `${failure.message} Run "svc receive" to resume.` });
    shown(waitText(failure.code));
    await pause(delay, undefined, io.signal === undefined ? {} : { signal: io.signal }).catch(() => {});
    delay = Math.min(MAX_RETRY_MS, delay * 2);
  }
}
