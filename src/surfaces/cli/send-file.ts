/** Stores a local file as an object, offers it, and waits until it is received. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { codeOf, SvcError } from '../../foundation/errors.ts';
import type { CliContext } from './context.ts';
import type { OfferAnswer } from './file-download.ts';
import { ProgressLine, progressText, TransferSpeed } from './transfer-progress.ts';
import { addFile } from './upload.ts';

/** Polling interval for the state of an offer, milliseconds. */
const POLL_INTERVAL_MS = 500;

async function sizeOf(file: string): Promise<number> {
  try {
    const there = await stat(file);
    if (there.isFile()) return there.size;
    throw new SvcError('invalid_request', {
      message: there.isDirectory()
        ? `${file} is a folder. Send it as one file: tar czf folder.tgz ${basename(file)} && svc send folder.tgz <agent>`
        : `${file} is not a regular file.`,
    });
  } catch (error) {
    if (error instanceof SvcError) throw error;
    throw new SvcError('not_found', { message: `${file} cannot be read (${codeOf(error)}).`, cause: error });
  }
}

/** SHA-256 of a file, lower-case hex. @throws SvcError `not_found` */
async function hashOf(file: string): Promise<string> {
  const hash = createHash('sha256');
  try {
    for await (const piece of createReadStream(file)) hash.update(piece);
  } catch (error) {
    throw new SvcError('not_found', { message: `${file} cannot be read (${codeOf(error)}).`, cause: error });
  }
  return hash.digest('hex');
}

/** The ID directly before another one, because lists start after an ID. */
function before(objectId: string): string {
  const previous = BigInt(`0x${objectId}`) - 1n;
  return (previous < 0n ? 0n : previous).toString(16).padStart(objectId.length, '0');
}

/** True if the agent already has the object. */
async function has(context: CliContext, aid: string, objectId: string): Promise<boolean> {
  const { objects } = await context.client.objectList({ aid, limit: 1, cursor: before(objectId) });
  return objects[0]?.object_id === objectId;
}

export interface SendRequest {
  readonly aid: string;
  readonly file: string;
  readonly recipient: string;
  readonly name: string | undefined;
  readonly message: string | undefined;
}

/**
 * Offers a file. The daemon stores its bytes while the offer is open.
 * @throws SvcError `not_found`, `invalid_request` for a folder, and other errors of the daemon
 */
export async function offerFile(context: CliContext, { aid, file, recipient, name, message }: SendRequest) {
  await sizeOf(file);
  const objectId = await hashOf(file);
  const shown = name ?? basename(file);
  const said = message === undefined ? {} : { message };
  const offer = (object_id: string, temporary: boolean) =>
    context.client.fileOffer({ aid, recipient, object_id, name: shown, temporary, ...said });
  const store = async () => offer((await addFile(context, aid, file, shown)).object_id, true);
  const known = (await has(context, aid, objectId))
    ? // The object may have belonged to another offer that ended in between.
      await offer(objectId, false).catch((error: unknown) => {
        if (error instanceof SvcError && error.code === 'not_found') return null;
        throw error;
      })
    : null;
  const { id, delivered } = known ?? (await store());
  return { ...(await context.client.fileOfferGet({ aid, id })), delivered };
}

/** Waits until an offer is over and shows its progress. @throws SvcError `cancelled`, and other errors of the daemon */
export async function waitForReceipt(context: CliContext, aid: string, offer: OfferAnswer): Promise<OfferAnswer> {
  const { io, options } = context;
  const speed = new TransferSpeed();
  using line = new ProgressLine(io, options.json === true || options.quiet === true);
  for (;;) {
    const now = await context.client.fileOfferGet({ aid, id: offer.id }).catch((error: unknown) => {
      // The daemon may be restarting. The offer survives that.
      if (error instanceof SvcError && error.code === 'daemon_unreachable') return offer;
      throw error;
    });
    if (now.state !== 'open') return now;
    const sent = now.sent_bytes ?? 0;
    const at = Date.now();
    speed.note(sent, at);
    if (sent > 0) line.show(() => progressText(now.name, sent, now.size, speed.perSecond()), at);
    await pause(POLL_INTERVAL_MS, undefined, io.signal === undefined ? {} : { signal: io.signal }).catch(() => {});
    if (io.signal?.aborted === true) throw new SvcError('cancelled', { message: 'The offer stays open.' });
  }
}
