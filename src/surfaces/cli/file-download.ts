/** Downloads an offered file from the daemon to a local folder, and resumes after interruptions. */
import { setTimeout as pause } from 'node:timers/promises';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import { authorization, baseOf, errorOf, failureOf } from '../../operations/client.ts';
import type { AnswerOf } from './client.ts';
import type { CliContext } from './context.ts';
import type { ReceivedFile } from './received-file.ts';
import { ProgressLine, progressText, TransferSpeed } from './transfer-progress.ts';

export type OfferAnswer = AnswerOf<'fileOfferGet'>;

/** Temporary failures: the sender or a daemon restarted, or a network changed. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['connect_failed', 'timeout', 'resolve_failed', 'network_unavailable', 'daemon_unreachable'] as const),
  ...(['network_not_ready', 'rate_limited'] as const),
]);
/** Gives up after this time without data, milliseconds. */
export const STALL_TIMEOUT_MS = 120_000;
/** Number of attempts after a wrong hash. */
const MAX_WRONG = 2;
/** First and longest pause between attempts, milliseconds. */
const RETRY_MS = 500;
const MAX_RETRY_MS = 8_000;

/** Requests the missing bytes. @throws SvcError the error of the daemon */
async function ask(context: CliContext, aid: string, id: string, from: number): Promise<Response> {
  const { token, headers, streamFetch = fetch } = context.connection;
  const base = baseOf(context.connection);
  const { signal } = context.io;
  const response = await streamFetch(`${base}/agents/${aid}/file-offers/${id}/content`, {
    headers: {
      ...headers,
      ...authorization(token),
      ...(from === 0 ? {} : { range: `bytes=${from}-` }),
    },
    redirect: 'error',
    ...(signal === undefined ? {} : { signal }),
  }).catch((error: unknown) => {
    throw failureOf(error, base, {});
  });
  if (response.ok || response.status === 416) return response;
  throw errorOf(response.status, await response.json().catch(() => undefined));
}

/** Appends the body of one response. A connection that ends early is not an error. */
async function takeAll(response: Response, file: ReceivedFile, size: number, moved: () => void): Promise<void> {
  // The local part is longer than the file, or the sender starts at the first byte.
  if (response.status === 416 || (response.status === 200 && file.length > 0)) await file.reset();
  if (response.status === 416 || response.body === null) {
    await response.body?.cancel();
    return;
  }
  const reader = response.body.getReader();
  try {
    for (;;) {
      const next = await reader.read().catch(() => ({ done: true, value: undefined }) as const);
      if (next.done || next.value === undefined) return;
      if (file.length + next.value.length > size)
        throw new SvcError('protocol_error', { message: 'The sender sent more bytes than it offered.' });
      await file.append(next.value);
      moved();
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
  let lastAt = Date.now();
  let delay = RETRY_MS;
  const moved = (): void => {
    lastAt = Date.now();
    delay = RETRY_MS;
    speed.note(file.length, lastAt);
    line.show(() => progressText(offer.name, file.length, offer.size, speed.perSecond()), lastAt);
  };
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
      await takeAll(await ask(context, aid, offer.id, file.length), file, offer.size, moved);
    } catch (error) {
      if (!(error instanceof SvcError) || !PASSING.has(error.code)) throw error;
      failure = error;
    }
    if (io.signal?.aborted === true) throw new SvcError('cancelled');
    if (file.length === offer.size) continue;
    if (Date.now() - lastAt > STALL_TIMEOUT_MS)
      throw new SvcError(failure.code, { message: `${failure.message} Run "svc receive" to resume.` });
    line.show(() => `${progressText(offer.name, file.length, offer.size, null)}  waiting for the sender …`, Date.now());
    await pause(delay, undefined, io.signal === undefined ? {} : { signal: io.signal }).catch(() => {});
    delay = Math.min(MAX_RETRY_MS, delay * 2);
  }
}
