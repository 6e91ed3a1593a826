/** `svc send`, `svc receive`, `svc files`: offer a file to another agent, which accepts or declines it. */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { basename, relative, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { pluralize, relativeTime } from '../../../foundation/display-text.ts';
import { codeOf, SvcError } from '../../../foundation/errors.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import {
  download,
  type OfferAnswer,
  ProgressLine,
  pathInRoot,
  progressText,
  TransferSpeed,
  uploadOffered,
} from '../file-transfer.ts';
import { prompt } from '../input.ts';
import type { Names } from '../names.ts';
import type { ACTING_AGENT } from '../options.ts';
import { shortSize } from '../reach-text.ts';
import { checkFolder, deletePart, partialOffers, ReceivedFile } from '../received-file.ts';
import { formatTable, safeLine, type WrappedText } from '../text.ts';

// Stores a local file as an object, offers it, and waits until it is received.

/** Bytes of one read. */
const HASH_READ_BYTES: number = 1024 * 1024;
/** Polling interval for the state of an offer, milliseconds. */
const POLL_INTERVAL_MS = 500;
/** A daemon that restarts answers again in this time, milliseconds. */
const RESTART_MS = 60_000;
/** A transfer without progress for this time is shown as waiting, milliseconds. */
const SHOWN_SILENCE_MS = 3_000;

async function sizeOf(file: string): Promise<number> {
  try {
    const there = await stat(file);
    if (there.isFile() && there.size === 0 && (await hasBytes(file)))
      throw new SvcError('invalid_request', {
        message: `${file} is made by the system as it is read, and has no size. Send a copy: cat ${file} > copy && svc send copy <agent>`,
      });
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

/** True if a file has content, whatever its size says: files in /proc and /sys. */
async function hasBytes(file: string): Promise<boolean> {
  await using handle = await open(file);
  return (await handle.read(Buffer.alloc(1), 0, 1, 0)).bytesRead > 0;
}

/** SHA-256 of a file, lower-case hex. Shows its progress. @throws SvcError `not_found` */
async function hashOf({ io, options }: CliContext, file: string, size: number): Promise<string> {
  using line = new ProgressLine(io, options.json === true || options.quiet === true);
  const hash = createHash('sha256');
  const speed = new TransferSpeed();
  let bytes = 0;
  try {
    const pieces: AsyncIterable<Buffer> = createReadStream(file, { highWaterMark: HASH_READ_BYTES });
    for await (const piece of pieces) {
      hash.update(piece);
      bytes += piece.length;
      const now = Date.now();
      speed.note(bytes, now);
      line.show(() => `hashing  ${progressText(basename(file), bytes, size, speed.perSecond())}`, now);
    }
  } catch (error) {
    throw new SvcError('not_found', { message: `${file} cannot be read (${codeOf(error)}).`, cause: error });
  }
  return hash.digest('hex');
}

/** The objects of an agent with a size. */
async function objectsOfSize({ client }: CliContext, aid: string, size: number): Promise<ReadonlySet<string>> {
  const found = new Set<string>();
  for (let cursor: string | undefined; ; ) {
    const page = await client.objectList({ aid, ...(cursor === undefined ? {} : { cursor }) });
    for (const object of page.objects) if (object.size === size) found.add(object.object_id);
    if (page.next_cursor === undefined) return found;
    cursor = page.next_cursor;
  }
}

/** The ID of a file if the agent already has it. Files of another size are not hashed, because storing them does that. */
async function knownObject(context: CliContext, aid: string, file: string, size: number): Promise<string | null> {
  const candidates = await objectsOfSize(context, aid, size);
  if (candidates.size === 0) return null;
  const objectId = await hashOf(context, file, size);
  return candidates.has(objectId) ? objectId : null;
}

interface SendRequest {
  readonly aid: string;
  readonly file: string;
  readonly recipient: string;
  readonly name: string | undefined;
  readonly message: string | undefined;
}

/**
 * Offers a file: as an object that the agent has already, as a file in files_root, or with its size, before its bytes
 * are sent to the daemon.
 * @throws SvcError `not_found`, `invalid_request` for a folder, and other errors of the daemon
 */
async function offerFile(context: CliContext, { aid, file, recipient, name, message }: SendRequest) {
  const size = await sizeOf(file);
  const objectId = await knownObject(context, aid, file, size);
  const shown = name ?? basename(file);
  const withMessage = message === undefined ? {} : { message };
  const offer = (source: { object_id: string } | { path: string } | { size: number }, temporary: boolean) =>
    context.client.fileOffer({ aid, recipient, name: shown, temporary, ...source, ...withMessage });
  // The object may have belonged to another offer that ended in between.
  const known =
    objectId === null
      ? null
      : await offer({ object_id: objectId }, false).catch((error: unknown) => {
          if (error instanceof SvcError && error.code === 'not_found') return null;
          throw error;
        });
  const path = known === null ? await pathInRoot(context, file) : null;
  const isUpload = known === null && path === null;
  const { id, delivered } = known ?? (await offer(path === null ? { size } : { path }, true));
  return { ...(await context.client.fileOfferGet({ aid, id })), delivered, isUpload };
}

/**
 * Sends the bytes of an offer to the daemon, again if it restarts. If the offer ends meanwhile, its state tells why. If
 * the file cannot be sent, the offer is withdrawn.
 * @throws SvcError `cancelled`, `not_found`, `wrong_state`, and other errors of the daemon
 */
async function sendBytes(context: CliContext, aid: string, offer: OfferAnswer, file: string): Promise<void> {
  const { client, io } = context;
  const { id } = offer;
  for (let retryUntil: number | null = null; ; ) {
    try {
      return await uploadOffered(context, aid, offer, file);
    } catch (error) {
      const code = error instanceof SvcError ? error.code : null;
      retryUntil ??= performance.now() + RESTART_MS;
      if (code === 'daemon_unreachable' && performance.now() < retryUntil) {
        await pause(POLL_INTERVAL_MS, undefined, io.signal === undefined ? {} : { signal: io.signal }).catch(() => {});
        continue;
      }
      const { state } = await client.fileOfferGet({ aid, id }).catch(() => offer);
      if (state !== 'open' && state !== 'withdrawn') return;
      if (state === 'open') await client.fileOfferWithdraw({ aid, id }).catch(() => {});
      throw code === 'cancelled'
        ? new SvcError('cancelled', { message: 'svcd has not received the whole file, so the offer is withdrawn.' })
        : error;
    }
  }
}

/** The progress of an offer, and what it waits for. */
function sendingText(offer: OfferAnswer, isStill: boolean, perSecond: number | null): string {
  const { name, size, sent_bytes: sent = 0, hashed_bytes: hashed } = offer;
  if (sent === 0 && hashed !== undefined) return `hashing  ${progressText(name, hashed, size, null)}`;
  if (sent === 0) return `${safeLine(name)}  waiting: not accepted yet`;
  return isStill
    ? `${progressText(name, sent, size, null)}  waiting: the receiver requests no bytes`
    : progressText(name, sent, size, perSecond);
}

/** Waits until an offer is over and shows its progress. @throws SvcError `cancelled`, and other errors of the daemon */
async function waitForReceipt(context: CliContext, aid: string, offer: OfferAnswer): Promise<OfferAnswer> {
  const { io, options } = context;
  const speed = new TransferSpeed();
  let last = { bytes: 0, at: Date.now() };
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
    if (sent !== last.bytes) last = { bytes: sent, at };
    const isStill = at - last.at >= SHOWN_SILENCE_MS;
    line.show(() => sendingText(now, isStill, speed.perSecond()), at);
    await pause(POLL_INTERVAL_MS, undefined, io.signal === undefined ? {} : { signal: io.signal }).catch(() => {});
    if (io.signal?.aborted === true) throw new SvcError('cancelled', { message: 'The offer stays open.' });
  }
}

/** Interval between checks for new offers, milliseconds. */
const ARRIVAL_POLL_MS = 1000;
/** Mode of new files before the user's umask. */
const FILE_MODE = 0o666;

interface Received {
  readonly offer_id: string;
  readonly object_id: string;
  readonly from: string;
  readonly name: string;
  readonly size: number;
  readonly path: string;
}

function sending(svc: CommandGroup<typeof ACTING_AGENT>): void {
  svc.run('send', 'offer a file to an agent and wait until it is received', {
    examples: [
      'svc send report.pdf aid1…',
      'svc send report.pdf bob --name "Report for May.pdf" -m "as promised"',
      'svc send film.mp4 bob --no-wait',
    ],
    options: {
      '<file>': 'a file on this machine',
      '<agent>': 'the recipient: a label or an AID',
      '--name <name>': 'its name for the recipient; default: the name of the file',
      '-m, --message <text>': 'a short message',
      '--no-wait': 'do not wait for the recipient; the offer is valid for a week',
    },
    run: async (context, { aid, file, agent, name, message, wait }) => {
      const recipient = await context.aid(agent);
      const made = await context.progress('Offering', offerFile(context, { aid, file, recipient, name, message }));
      const { isUpload, ...offer } = made;
      const shown = (await context.names(made)).shown(made.peer);
      const begins = isUpload
        ? 'Ctrl-C stops waiting; until the file is stored, it withdraws the offer'
        : 'Ctrl-C stops waiting and keeps the offer';
      if (wait)
        context.info(
          `${made.delivered ? 'Offered' : `${shown} is offline; the offer is queued`}. ${shown} accepts it with "svc receive". ${begins}. This machine must be reachable when the file is received.`,
        );
      if (isUpload) await sendBytes(context, aid, offer, file);
      const { delivered } = made;
      return {
        ...(await (wait ? waitForReceipt(context, aid, offer) : context.client.fileOfferGet({ aid, id: made.id }))),
        delivered,
      };
    },
    text: ({ id, peer, name, size, state }) =>
      state === 'open'
        ? `Offered ${safeLine(name)} (${shortSize(size)}) to ${peer}. "svc files list" shows its state, "svc files rm ${id}" withdraws it.`
        : `${peer} has ${state === 'taken' ? 'received' : `not received`} ${safeLine(name)}${state === 'taken' ? '' : `: ${state}`}.`,
    quiet: ({ id }) => id,
    fails: ({ state, name, problem }) =>
      state !== 'open' &&
      state !== 'taken' &&
      `${safeLine(name)} was not received: ${problem === undefined ? `the offer is ${state}.` : safeLine(problem)}`,
  });
}

/** Selects offers by sender, or by ID or ID prefix. Selects all without an argument. */
async function meant(
  context: CliContext,
  offers: readonly OfferAnswer[],
  which: string | undefined,
): Promise<OfferAnswer[]> {
  if (which === undefined) return [...offers];
  const typed = which.trim().replace(/…$/, '').toLowerCase();
  const byId = /^[0-9a-f]{4,}$/.test(typed) ? offers.filter(({ id }) => id.startsWith(typed)) : [];
  if (byId.length > 0) return byId;
  const peer = await context.aid(which);
  return offers.filter((offer) => offer.peer === peer);
}

/** The open offers. With `wait`, returns as soon as there is one. */
async function offered(
  context: CliContext,
  aid: string,
  which: string | undefined,
  wait: boolean,
): Promise<OfferAnswer[]> {
  const { signal } = context.io;
  for (let isFirst = true; ; isFirst = false) {
    const { offers } = await context.client.fileOfferList({ aid, direction: 'in' });
    // Oldest first.
    const found = await meant(context, offers.toReversed(), which);
    if (found.length > 0 || !wait || signal?.aborted === true) return found;
    if (isFirst) context.info('No offers yet. Waiting …');
    await pause(ARRIVAL_POLL_MS, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

/** Asks the user about an offer. @throws SvcError `cancelled` */
async function wish(context: CliContext, offer: OfferAnswer): Promise<'take' | 'decline' | 'leave'> {
  const from = (await context.names([offer.peer])).shown(offer.peer);
  const message = offer.message === undefined ? '' : `: "${safeLine(offer.message)}"`;
  const what = `${safeLine(offer.name)} (${shortSize(offer.size)}) from ${safeLine(from)}, ${relativeTime(offer.at, Date.now())}${message}`;
  const answer = (await prompt(context.io, `${what}\nAccept? [y]es, [n]ot now, [d]ecline: `, false)).trim();
  if (/^y(es)?$/i.test(answer)) return 'take';
  return /^d(ecline)?$/i.test(answer) ? 'decline' : 'leave';
}

/** The state of an offer; `open` if svcd cannot tell. */
async function stateOf({ client }: CliContext, aid: string, id: string): Promise<OfferAnswer['state']> {
  try {
    return (await client.fileOfferGet({ aid, id })).state;
  } catch {
    return 'open';
  }
}

/** Deletes partial files whose offers are over. Parts that belong to other agents' offers stay. */
async function discardOver({ client }: CliContext, aid: string, folder: string): Promise<void> {
  const ids = new Set(await partialOffers(folder));
  if (ids.size === 0) return;
  const { offers } = await client.fileOfferList({ aid, direction: 'in', all: true });
  for (const { id, state } of offers) if (ids.has(id) && state !== 'open') await deletePart(folder, id);
}

async function take(context: CliContext, aid: string, offer: OfferAnswer, folder: string): Promise<Received> {
  await using file = await ReceivedFile.open(folder, offer.id);
  let objectId: string;
  try {
    objectId = await download(context, aid, offer, file);
  } catch (error) {
    const state = await stateOf(context, aid, offer.id);
    if (state === 'open') throw error;
    await file.discard();
    throw state === 'withdrawn'
      ? new SvcError('wrong_state', { message: `The sender withdrew ${safeLine(offer.name)}.`, cause: error })
      : error;
  }
  const path = await file.finish(offer.name, FILE_MODE & ~process.umask());
  await context.client.fileOfferTaken({ aid, id: offer.id });
  const { id: offer_id, peer: from, name, size } = offer;
  return { offer_id, object_id: objectId, from, name, size, path };
}

/** A path relative to the current folder, if that is shorter. */
function shortPath(path: string): string {
  const short = relative('.', path);
  return short.startsWith('..') ? path : short;
}

function receiving(svc: CommandGroup<typeof ACTING_AGENT>): void {
  svc.run('receive', 'receive offered files; asks about each and resumes interrupted transfers', {
    examples: ['svc receive', 'svc receive bob -y --into ~/Downloads', 'svc receive --wait -y'],
    options: {
      '[from]': 'a sender, or an offer ID from "svc files list"; default: all',
      '-y, --yes': 'accept without asking',
      '--into <folder>': 'target folder; default: the current one',
      '--wait': 'wait until a file is offered',
    },
    run: async (context, { aid, from, yes, into = '.', wait }) => {
      await checkFolder(into);
      await discardOver(context, aid, resolve(into));
      const offers = await offered(context, aid, from, wait === true);
      if (offers.length > 0 && yes !== true && !context.interactive)
        throw new SvcError('invalid_request', {
          message: `Nothing was received: there is no terminal to ask about ${pluralize(offers.length, 'offered file')}. "svc files list" shows the offers, -y accepts them.`,
        });
      const received: Received[] = [];
      for (const offer of offers) {
        const wished = yes === true ? 'take' : await wish(context, offer);
        if (wished === 'decline') await context.client.fileOfferDecline({ aid, id: offer.id });
        if (wished === 'take') received.push(await take(context, aid, offer, resolve(into)));
      }
      return { offered: offers.length, received };
    },
    text: ({ offered: count, received }) =>
      received.length === 0
        ? count === 0
          ? 'No offers.'
          : 'Nothing was received.'
        : formatTable(
            ['FILE', 'SIZE', 'FROM'],
            received.map(({ path, size, from }) => [shortPath(path), shortSize(size), from]),
          ),
    quiet: ({ received }) => received.map(({ path }) => path).join('\n'),
  });
}

function listText({ offers }: AnswerOf<'fileOfferList'>, names: Names): WrappedText {
  const now = Date.now();
  return formatTable(
    ['ID', '', 'AGENT', 'NAME', 'SIZE', 'OFFERED', 'STATE'],
    offers.map((one) => [
      one.id,
      one.direction === 'in' ? 'from' : 'to',
      names.shown(one.peer),
      one.message === undefined ? one.name : `${one.name}: ${one.message}`,
      shortSize(one.size),
      relativeTime(one.at, now),
      one.state === 'open' && (one.sent_bytes ?? 0) > 0
        ? `${Math.floor((100 * (one.sent_bytes ?? 0)) / one.size)} %`
        : one.problem === undefined
          ? one.state
          : `${one.state}: ${one.problem}`,
    ]),
    'No files are offered.',
  );
}

function listing(svc: CommandGroup): void {
  const files = svc
    .group('files', 'files offered to and by an agent', ['svc files list', 'svc files rm 5f0c1d2e'])
    .acting();
  files.call('fileOfferList', 'list --all', 'list file offers, newest first', {
    examples: ['svc files list', 'svc files list --all'],
    watch: true,
    aids: 'labeled',
    text: (answer, _, names) => listText(answer, names),
    quiet: ({ offers }) => offers.map(({ id }) => id).join('\n'),
  });
  files.call('fileOfferWithdraw', 'rm <id>', 'withdraw an offer, so that the file cannot be received', {
    text: ({ name, peer }) => `${safeLine(name)} is no longer offered to ${peer}.`,
    quiet: 'id',
  });
  files.call('fileOfferDecline', 'decline <id>', 'decline an offered file', {
    text: ({ name, peer }) => `Declined ${safeLine(name)}. ${peer} is notified.`,
    quiet: 'id',
  });
}

export function fileCommands(svc: CommandGroup): void {
  const acting = svc.acting();
  sending(acting);
  receiving(acting);
  listing(svc);
}
