/** `svc on` and `svc hooks`: programs that start when something arrives. */
import { join, resolve } from 'node:path';
import { readDaemonInfo } from '../../../foundation/data-dir/daemon-info.ts';
import { pluralize, relativeTime } from '../../../foundation/display-text.ts';
import { HOOK_KINDS, MAX_HOOK_TIMEOUT_MS } from '../../../foundation/domain/hooks.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { hookProof } from '../../../foundation/hook-proof.ts';
import { findProgram } from '../../../foundation/programs.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { ACTING_AGENT, choice, integer, type ParsedOptions, repeatable, seconds } from '../options.ts';
import { formatFields, formatTable, type WrappedText } from '../text.ts';

type Hook = AnswerOf<'hookList'>['hooks'][number];
type Delivery = AnswerOf<'hookDeliveries'>['deliveries'][number];

const ON_OPTIONS = {
  '<kind>': { ...choice(...HOOK_KINDS), about: 'the kind of item that starts the program' },
  '<command...>': 'the program and its arguments',
  '--from <agent>': repeatable('only for this sender; repeatable'),
  '--known': 'only for senders that you know: friends, labels, and allowed agents',
  ...ACTING_AGENT,
  '--parallel <count>': integer('programs of this hook at the same time; default 4'),
  '--timeout <seconds>': seconds('time for one run; default 300', { minMs: 1000, maxMs: MAX_HOOK_TIMEOUT_MS }),
  '--dir <folder>': 'working directory of the program; default: this folder',
  '--shell': 'the command is one text for /bin/sh (on Windows: cmd)',
} as const;

type On = ParsedOptions<'', typeof ON_OPTIONS>;

/** The absolute path of a program: the daemon may have another PATH. @throws SvcError `not_found` */
function programPath(name: string, environment: NodeJS.ProcessEnv): string {
  const found = findProgram(name, environment);
  if (found !== null) return found;
  const advice =
    process.platform === 'win32'
      ? 'Check its name. A script needs the program that runs it, such as "python answer.py".'
      : 'Check its name and that it is executable.';
  throw new SvcError('not_found', { message: `There is no program ${name}. ${advice}` });
}

/** A command with the absolute path of its program. @throws SvcError `not_found` */
export function ownCommand([name = '', ...args]: readonly string[], environment: NodeJS.ProcessEnv): string[] {
  return [programPath(name, environment), ...args];
}

/** The key that proves that this user runs the daemon. @throws SvcError `access_denied`, `local_only` */
export function proofKey(context: CliContext): Buffer {
  if (context.options.via !== undefined)
    throw new SvcError('local_only', { message: 'Programs run on their own machine. Run this command there.' });
  const key = readDaemonInfo(context.dataDir)?.proof_key;
  if (key !== undefined) return Buffer.from(key, 'base64url');
  throw new SvcError('access_denied', {
    message: `Only the user that runs the daemon can choose programs to run. ${join(context.dataDir, 'daemon.json')} cannot be read: set SVCD_DATA_DIR to the daemon's data directory.`,
  });
}

/** Tells the user that hooks of these agents answer calls before a service or a newer hook. */
export async function warnOfCallHooks(context: CliContext, aids: readonly string[]): Promise<void> {
  if (context.options.json === true || context.options.quiet === true) return;
  // A remote daemon may refuse the list.
  const { hooks } = await context.client.hookList({}).catch(() => ({ hooks: [] }));
  for (const { id, aid, kind, paused, from, only_known } of hooks) {
    if (kind !== 'call' || paused || !aids.includes(aid)) continue;
    const callers = from.length > 0 ? pluralize(from.length, 'caller') : only_known ? 'known callers' : 'all callers';
    context.info(
      `Calls of ${callers} to ${aid} reach the program of the hook ${id} first. "svc hooks rm ${id}" ends this.`,
    );
  }
}

async function add(context: CliContext, typed: On): Promise<Hook> {
  const key = proofKey(context);
  const shell = typed.shell === true;
  const command = shell ? typed.command : ownCommand(typed.command, context.io.env);
  const from = await Promise.all((typed.from ?? []).map((agent) => context.aid(agent)));
  const hook = { aid: typed.aid, kind: typed.kind, command, shell, folder: resolve(typed.dir ?? '.') };
  const { timeout, parallel, known } = typed;
  if (typed.kind === 'call') await warnOfCallHooks(context, [typed.aid]);
  return context.client.hookAdd({
    ...hook,
    from,
    ...(known === true ? { only_known: true } : {}),
    ...(parallel === undefined ? {} : { parallel }),
    ...(timeout === undefined ? {} : { timeout_s: timeout / 1000 }),
    proof: hookProof(key, hook),
  });
}

function when(iso: string | null): string {
  return iso === null ? '-' : relativeTime(iso, Date.now());
}

function hooksText({ hooks }: AnswerOf<'hookList'>): WrappedText {
  return formatTable(
    ['ID', 'ON', 'AGENT', 'FROM', 'WAITING', 'RUNNING', 'DEAD', 'STATE', 'COMMAND'],
    hooks.map((one) => [
      one.id,
      one.kind,
      one.aid,
      one.from.length > 0 ? one.from.join(' ') : one.only_known ? 'known' : 'all',
      String(one.waiting),
      String(one.running),
      String(one.dead),
      one.paused ? 'paused' : one.skipped > 0 ? `${one.skipped} skipped` : 'active',
      one.command.join(' '),
    ]),
    'No hooks. Add one with "svc on note -- <program>".',
  );
}

function resultText(one: Delivery): string {
  if (one.problem !== undefined) return one.problem;
  return one.exit_code === null ? '-' : `exit code ${one.exit_code}`;
}

function deliveriesText(deliveries: readonly Delivery[]): WrappedText {
  return formatTable(
    ['DELIVERY', 'FROM', 'STATE', 'STARTS', 'ARRIVED', 'RESULT'],
    deliveries.map((one) => [String(one.id), one.from, one.state, String(one.attempts), when(one.at), resultText(one)]),
    'No deliveries.',
  );
}

export function hookCommands(svc: CommandGroup): void {
  svc.run('on', 'start a program when something arrives for an agent', {
    examples: ['svc on note --known -- ./answer.py', "svc on chat --from bob --shell 'cat >> chat.jsonl'"],
    options: ON_OPTIONS,
    run: add,
    text: ({ id, kind, command }) => formatFields({ hook: id, on: kind, command: command.join(' ') }),
    quiet: ({ id }) => id,
    remark: ({ id }) => `See what it did with "svc hooks deliveries ${id}". Remove it with "svc hooks rm ${id}".`,
  });

  const list = {
    text: hooksText,
    quiet: (answer: AnswerOf<'hookList'>) => answer.hooks.map(({ id }) => id).join('\n'),
    watch: true as const,
  };
  const hooks = svc.group(
    'hooks',
    'programs that start when something arrives',
    ['svc hooks', 'svc hooks deliveries 9f2c… --state dead'],
    { run: (context) => context.client.hookList({}), ...list },
  );
  hooks.call('hookList', 'list', 'list the hooks', list);
  hooks.call('hookPatch', 'pause <id>', 'start no programs; items wait', {
    sets: { paused: true },
    text: ({ id }) => `Paused ${id}.`,
    quiet: 'id',
  });
  hooks.call('hookPatch', 'resume <id>', 'start programs again', {
    sets: { paused: false },
    text: ({ id }) => `Resumed ${id}.`,
    quiet: 'id',
  });
  hooks.call('hookRemove', 'rm <id>', 'remove a hook and stop its programs', {
    text: (_, { id }) => `Removed ${id}.`,
  });
  const deliveries = 'deliveries <id> --state <state> --limit <count>';
  hooks.call('hookDeliveries', deliveries, 'list what started the programs of a hook, newest first', {
    text: (answer) => deliveriesText(answer.deliveries),
    quiet: (answer) => answer.deliveries.map(({ id }) => String(id)).join('\n'),
    remark: ({ has_more }) => has_more && 'There are more: use --limit.',
    watch: true,
  });
  hooks.call('hookDelivery', 'delivery <id> <delivery>', 'show one delivery with the output of its program', {
    text: (one) => [deliveriesText([one]), `\n${one.output}`],
    quiet: 'output',
  });
  hooks.call('hookRetry', 'retry <id> <delivery>', 'start a dead delivery again', {
    text: ({ id }) => `Delivery ${id} starts again.`,
    quiet: 'id',
  });
  hooks.call('hookDrop', 'drop <id> <delivery>', 'delete a delivery', {
    text: (_, { delivery }) => `Deleted delivery ${delivery}.`,
  });
}
