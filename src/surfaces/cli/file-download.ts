/** Brings the bytes of an offered file from the daemon to a folder of this machine, however often that breaks off. */
import { setTimeout as pause } from 'node:timers/promises';
import { type ErrorCode, SvcError } from '../../foundation/errors.ts';
import { authorization, baseOf, errorOf, failureOf } from '../../operations/client.ts';
import type { AnswerOf } from './client.ts';
import type { CliContext } from './context.ts';
import type { ReceivedFile } from './received-file.ts';
import { ProgressLine, progressText, Speed } from './transfer-progress.ts';

export type OfferAnswer = AnswerOf<'fileOfferGet'>;

/** What may pass by itself: the sender or a daemon was restarted, or a network changed. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['connect_failed', 'timeout', 'resolve_failed', 'network_unavailable', 'daemon_unreachable'] as const),
  ...(['network_not_ready', 'rate_limited'] as const),
]);
/** A file of which nothing comes for this long is left for another time, milliseconds. */
export const GIVE_UP_MS = 120_000;
/** So often the bytes of a file may turn out wrong. */
const MAX_WRONG = 2;
/** From one attempt to the next, milliseconds: at first, and at most. */
const RETRY_MS = 500;
const MAX_RETRY_MS = 8_000;

/** Asks for what is not here yet. @throws SvcError what the daemon answers */
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

/** Takes what comes of one answer; the end of a connection is no error of its own. */
async function takeAll(response: Response, file: ReceivedFile, size: number, moved: () => void): Promise<void> {
  // What is here is longer than the file, or the sender begins at its beginning.
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
        throw new SvcError('protocol_error', { message: 'The sender sent more than it had offered.' });
      await file.append(next.value);
      moved();
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}

/**
 * Brings all bytes of an offer into a file, from where it stands.
 * @throws SvcError `protocol_error` where they are not what was offered: then nothing is kept of them; `cancelled` where
 *   the command is interrupted, and what the daemon answers where that does not pass: another attempt goes on
 */
export async function download(
  context: CliContext,
  aid: string,
  offer: OfferAnswer,
  file: ReceivedFile,
): Promise<void> {
  const { io, options } = context;
  const speed = new Speed();
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
      // The first time it may have been a part of an earlier day.
      if (++wrong < MAX_WRONG) continue;
      await file.discard();
      throw new SvcError('protocol_error', {
        message: `What comes of ${offer.name} is not the file that was offered.`,
      });
    }
    let failure = new SvcError('connect_failed', { message: 'The transfer broke off.' });
    try {
      await takeAll(await ask(context, aid, offer.id, file.length), file, offer.size, moved);
    } catch (error) {
      if (!(error instanceof SvcError) || !PASSING.has(error.code)) throw error;
      failure = error;
    }
    if (io.signal?.aborted === true) throw new SvcError('cancelled');
    if (file.length === offer.size) continue;
    if (Date.now() - lastAt > GIVE_UP_MS)
      throw new SvcError(failure.code, { message: `${failure.message} "svc receive" goes on with what is here.` });
    line.show(() => `${progressText(offer.name, file.length, offer.size, null)}  waiting for the sender …`, Date.now());
    await pause(delay, undefined, io.signal === undefined ? {} : { signal: io.signal }).catch(() => {});
    delay = Math.min(MAX_RETRY_MS, delay * 2);
  }
}
