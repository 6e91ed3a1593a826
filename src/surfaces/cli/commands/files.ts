/** `svc send`, `svc receive`, `svc files`: a file to another agent, which says whether it wants it. */
import { relative, resolve } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { SvcError } from '../../../foundation/errors.ts';
import { counted, relativeTime } from '../../../foundation/plain-words.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { download, type OfferAnswer } from '../file-download.ts';
import type { Laid } from '../laid.ts';
import type { Names } from '../names.ts';
import { ask } from '../prompt.ts';
import { roughSize } from '../reach-text.ts';
import { checkFolder, discardPart, partsIn, ReceivedFile } from '../received-file.ts';
import { offerFile, untilOver } from '../send-file.ts';
import type { ACTING } from '../takes.ts';
import { formatTable, safeLine } from '../text.ts';

/** From one look for an offer to the next, milliseconds. */
const ARRIVAL_LOOK_MS = 1000;
/** What new files are for everybody before the umask of the user. */
const FILE_MODE = 0o666;

interface Received {
  readonly offer_id: string;
  readonly object_id: string;
  readonly from: string;
  readonly name: string;
  readonly size: number;
  readonly path: string;
}

function sending(svc: CommandGroup<typeof ACTING>): void {
  svc.run('send', 'offer a file to an agent, which takes it when it likes; waits until it is taken', {
    examples: [
      'svc send report.pdf aid1…',
      'svc send report.pdf bob --name "Report for May.pdf" -m "as promised"',
      'svc send film.mp4 bob --no-wait',
    ],
    takes: {
      '<file>': 'any file of this machine',
      '<agent>': 'who gets it: a label, or an AID',
      '--name <name>': 'what it is called there; as here where it is left out',
      '-m, --message <text>': 'a few words that go with it',
      '--no-wait': 'end at once; the offer stands for a week',
    },
    run: async (context, { aid, file, agent, name, message, wait }) => {
      const recipient = await context.aid(agent);
      const made = await context.progress('Offering', offerFile(context, { aid, file, recipient, name, message }));
      if (!wait) return made;
      const shown = (await context.names(made)).shown(made.peer);
      context.note(
        `${made.delivered ? 'Offered' : `${shown} is away; the offer waits`}. ${shown} takes it with "svc receive". Ctrl-C ends the waiting, not the offer; this machine has to be reachable then.`,
      );
      return { ...(await untilOver(context, aid, made)), delivered: made.delivered };
    },
    text: ({ id, peer, name, size, state }) =>
      state === 'open'
        ? `${safeLine(name)} (${roughSize(size)}) is offered to ${peer}. "svc files list" shows what becomes of it, "svc files withdraw ${id}" takes it back.`
        : `${peer} has ${state === 'taken' ? 'taken' : `not taken`} ${safeLine(name)}${state === 'taken' ? '' : `: ${state}`}.`,
    quiet: ({ id }) => id,
    fails: ({ state, name }) =>
      state !== 'open' && state !== 'taken' && `${safeLine(name)} was not taken: the offer is ${state}.`,
  });
}

/** Offers that are meant: of a sender, or of an id or its beginning; all where nothing is said. */
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

/** What is offered now; with `wait` as soon as something is. */
async function offered(
  context: CliContext,
  aid: string,
  which: string | undefined,
  wait: boolean,
): Promise<OfferAnswer[]> {
  const { signal } = context.io;
  for (let isFirst = true; ; isFirst = false) {
    const { offers } = await context.client.fileOfferList({ aid, direction: 'in' });
    // The oldest first: in the order in which they came.
    const found = await meant(context, offers.toReversed(), which);
    if (found.length > 0 || !wait || signal?.aborted === true) return found;
    if (isFirst) context.note('Nothing is offered yet. Waiting …');
    await pause(ARRIVAL_LOOK_MS, undefined, signal === undefined ? {} : { signal }).catch(() => {});
  }
}

/** What a person says to an offer. @throws SvcError `cancelled` */
async function wish(context: CliContext, offer: OfferAnswer): Promise<'take' | 'decline' | 'leave'> {
  const from = (await context.names([offer.peer])).shown(offer.peer);
  const said = offer.message === undefined ? '' : `: "${safeLine(offer.message)}"`;
  const what = `${safeLine(offer.name)} (${roughSize(offer.size)}) from ${safeLine(from)}, ${relativeTime(offer.at, Date.now())}${said}`;
  const answer = (await ask(context.io, `${what}\nTake it? [y]es, [n]ot now, [d]ecline: `, false)).trim();
  if (/^y(es)?$/i.test(answer)) return 'take';
  return /^d(ecline)?$/i.test(answer) ? 'decline' : 'leave';
}

/** True where nobody goes on with an offer: it was taken back, declined, or is too old. */
async function isOver({ client }: CliContext, aid: string, id: string): Promise<boolean> {
  try {
    return (await client.fileOfferGet({ aid, id })).state !== 'open';
  } catch {
    return false;
  }
}

/** Deletes what is here of files whose offers are over; parts of other agents' offers are left alone. */
async function discardOver({ client }: CliContext, aid: string, folder: string): Promise<void> {
  const ids = new Set(await partsIn(folder));
  if (ids.size === 0) return;
  const { offers } = await client.fileOfferList({ aid, direction: 'in', all: true });
  for (const { id, state } of offers) if (ids.has(id) && state !== 'open') await discardPart(folder, id);
}

async function take(context: CliContext, aid: string, offer: OfferAnswer, folder: string): Promise<Received> {
  await using file = await ReceivedFile.open(folder, offer.id);
  try {
    await download(context, aid, offer, file);
  } catch (error) {
    if (await isOver(context, aid, offer.id)) await file.discard();
    throw error;
  }
  const path = await file.finish(offer.name, FILE_MODE & ~process.umask());
  await context.client.fileOfferTaken({ aid, id: offer.id });
  const { id: offer_id, object_id, peer: from, name, size } = offer;
  return { offer_id, object_id, from, name, size, path };
}

/** A path as a person writes it who stands in the present folder. */
function shortPath(path: string): string {
  const short = relative('.', path);
  return short.startsWith('..') ? path : short;
}

function receiving(svc: CommandGroup<typeof ACTING>): void {
  svc.run('receive', 'take files that others offer: asks for each, goes on where it broke off', {
    examples: ['svc receive', 'svc receive bob -y --into ~/Downloads', 'svc receive --wait -y'],
    takes: {
      '[from]': 'those of one sender, or one by its id as "svc files list" shows it; all where it is left out',
      '-y, --yes': 'take them without asking',
      '--into <folder>': 'where to; the present folder where it is left out',
      '--wait': 'wait until something is offered',
    },
    run: async (context, { aid, from, yes, into = '.', wait }) => {
      await checkFolder(into);
      await discardOver(context, aid, resolve(into));
      const offers = await offered(context, aid, from, wait === true);
      if (offers.length > 0 && yes !== true && !context.interactive)
        throw new SvcError('invalid_request', {
          message: `Nothing was taken: nobody is there to ask about ${counted(offers.length, 'offered file')}. "svc files list" shows them; -y takes them.`,
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
          ? 'Nothing is offered.'
          : 'Nothing was taken.'
        : formatTable(
            ['FILE', 'SIZE', 'FROM'],
            received.map(({ path, size, from }) => [shortPath(path), roughSize(size), from]),
          ),
    quiet: ({ received }) => received.map(({ path }) => path).join('\n'),
  });
}

function listText({ offers }: AnswerOf<'fileOfferList'>, names: Names): Laid {
  const now = Date.now();
  return formatTable(
    ['ID', '', 'AGENT', 'NAME', 'SIZE', 'OFFERED', 'STATE'],
    offers.map((one) => [
      one.id,
      one.direction === 'in' ? 'from' : 'to',
      names.shown(one.peer),
      one.message === undefined ? one.name : `${one.name}: ${one.message}`,
      roughSize(one.size),
      relativeTime(one.at, now),
      one.state === 'open' && (one.sent_bytes ?? 0) > 0
        ? `${Math.floor((100 * (one.sent_bytes ?? 0)) / one.size)} %`
        : one.state,
    ]),
    'No file is offered.',
  );
}

function listing(svc: CommandGroup): void {
  const files = svc
    .group('files', 'files that are offered to an agent and by it', ['svc files list', 'svc files withdraw 5f0c1d2e'])
    .acting();
  files.run('list', 'list them, newest first', {
    examples: ['svc files list', 'svc files list --all'],
    takes: { '--all': 'those that are over, too' },
    watch: true,
    run: (context, { aid, all }) => context.client.fileOfferList({ aid, ...(all === true ? { all } : {}) }),
    aids: 'told',
    text: (answer, _, names) => listText(answer, names),
    quiet: ({ offers }) => offers.map(({ id }) => id).join('\n'),
  });
  files.call('withdraw <id>', 'take an offer back: nobody gets the file by it any more', {
    operation: 'fileOfferWithdraw',
    text: ({ name, peer }) => `${safeLine(name)} is not offered to ${peer} any more.`,
    quiet: ({ id }) => id,
  });
  files.call('decline <id>', 'refuse an offered file', {
    operation: 'fileOfferDecline',
    text: ({ name, peer }) => `${safeLine(name)} is declined; ${peer} is told.`,
    quiet: ({ id }) => id,
  });
}

export function fileCommands(svc: CommandGroup): void {
  const acting = svc.acting();
  sending(acting);
  receiving(acting);
  listing(svc);
}
