/** `svc admin`: who may drive this node from afar, and who did. */
import { Argument, type Command } from 'commander';
import { accessTable, entryView } from '../access-text.ts';
import { type AllowOptions, addAllowOptions, allowInput } from '../allow-options.ts';
import type { CliContext, ContextOf, SvcClient } from '../context.ts';
import { examples } from '../examples.ts';
import { formatTable, relativeTime, safeLine } from '../text.ts';
import { integer } from '../values.ts';

type State = Awaited<ReturnType<SvcClient['remoteAdminGet']>>;
type Audit = Awaited<ReturnType<SvcClient['remoteAdminAudit']>>;

/** Label of the entry that `svc admin password` makes. */
const PASSWORD = 'password';

function stateText(state: State): string {
  const now = Date.now();
  const { last_access: access, last_refused: refused } = state;
  const lastAccess = access && `${relativeTime(access.at, now)}, ${access.aid}, ${access.method} ${access.path}`;
  const lastRefused = refused && `${relativeTime(refused.at, now)}, ${refused.aid} (${refused.reason})`;
  return [
    `Remote administration is ${state.enabled ? 'on' : 'off'}.`,
    accessTable(state),
    lastAccess === null ? '' : safeLine(`Last access: ${lastAccess}`),
    lastRefused === null ? '' : safeLine(`Last refused: ${lastRefused}`),
  ]
    .filter((line) => line !== '')
    .join('\n');
}

function auditText({ entries }: Audit): string {
  if (entries.length === 0) return 'Nothing was asked over remote administration.';
  const row = (e: Audit['entries'][number]): string[] => [
    e.at,
    e.aid,
    e.address ?? '',
    e.method ?? 'refused',
    [e.path ?? e.refused ?? '', ...e.tools].join(' '),
    e.status === null ? '' : String(e.status),
  ];
  return formatTable(['AT', 'WHO', 'ADDRESS', 'METHOD', 'PATH', 'STATUS'], entries.map(row));
}

async function setPassword(context: CliContext, typed: string | undefined): Promise<void> {
  const { client } = context;
  const before = (await client.remoteAdminGet()).allow.filter((e) => e.aid === undefined && e.label === PASSWORD);
  const off = typed === 'off';
  const secret = typed ?? (await context.readSecret('new password: '));
  // The new one first: a failure must not leave the door without a key, nor the old key in the door.
  const kept = off ? undefined : (await client.remoteAdminAllow({ secret, label: PASSWORD })).id;
  for (const { id } of before) if (id !== kept) await client.remoteAdminAllowDelete({ id });
  const text = off ? 'The password is gone.' : 'The password is set. Connections that the old one opened are cut.';
  context.show({ ok: true, password: !off }, { text: () => text, quiet: () => (off ? 'off' : 'on') });
}

function switchCommands(admin: Command, contextOf: ContextOf): void {
  const view = { text: stateText, quiet: (s: State) => (s.enabled ? 'on' : 'off') };
  for (const [name, enabled, description] of [
    ['on', true, 'let those on the list administer this node from afar'],
    ['off', false, 'let nobody in, and cut who is'],
  ] as const) {
    admin
      .command(name)
      .description(description)
      .addHelpText('after', examples(`svc admin ${name}`))
      .action(async (_options, command: Command) => {
        const context = contextOf(command);
        const state = await context.client.remoteAdminPatch({ enabled });
        context.show(state, view);
        if (enabled && state.allow.length === 0)
          context.note('Nobody is allowed yet: svc admin allow <aid>, or svc admin password.');
      });
  }
  const status = async (_options: unknown, command: Command): Promise<void> => {
    const context = contextOf(command);
    context.show(await context.client.remoteAdminGet(), view);
  };
  admin
    .command('status')
    .description('show whether it is on, for whom, and the last access')
    .addHelpText('after', examples('svc admin status'))
    .action(status);
  admin
    .command('audit')
    .description('list what was asked and who was refused, the newest first')
    .addHelpText('after', examples('svc admin audit --limit 20'))
    .option('--limit <n>', 'at most so many', integer)
    .action(async ({ limit }: { limit?: number }, command: Command) => {
      const context = contextOf(command);
      context.show(await context.client.remoteAdminAudit(limit === undefined ? {} : { limit }), { text: auditText });
    });
}

function listCommands(admin: Command, contextOf: ContextOf): void {
  admin
    .command('password')
    .argument('[secret]', 'asked for where it is left out; "off" takes it away')
    .description('set the password that lets in who is on no list, or take it away')
    .addHelpText('after', examples('svc admin password   # asks for it', 'svc admin password off'))
    .action((secret: string | undefined, _options, command: Command) => setPassword(contextOf(command), secret));
  addAllowOptions(
    admin
      .command('allow')
      .argument('[aid]')
      .description('let an AID administer this node, or who presents a secret')
      .addHelpText(
        'after',
        examples('svc admin allow aid1… --expires 12h', 'svc admin allow --generate   # a secret, shown this once'),
      ),
  ).action(async (aid: string | undefined, options: AllowOptions, command: Command) => {
    const context = contextOf(command);
    const input = await allowInput(context, aid, options);
    const added = context.client.remoteAdminAllow({ ...input, ...(aid === undefined ? {} : { aid }) });
    context.show(await added, entryView);
  });
  admin
    .command('deny')
    .argument('<aid>')
    .description('refuse an AID, whatever else would let it in; its open connections are cut')
    .addHelpText('after', examples('svc admin deny aid1…'))
    .action(async (aid: string, _options, command: Command) => {
      const context = contextOf(command);
      context.show(await context.client.remoteAdminDeny({ aid }), entryView);
    });
  admin
    .command('del')
    .addArgument(new Argument('<list>').choices(['allow', 'deny']))
    .argument('<id>', 'of the entry, as "status" lists it')
    .description('take an entry off a list')
    .addHelpText('after', examples('svc admin del allow 7f3a…'))
    .action(async (list: 'allow' | 'deny', id: string, _options, command: Command) => {
      const context = contextOf(command);
      const method = list === 'allow' ? 'remoteAdminAllowDelete' : 'remoteAdminDenyDelete';
      context.show(await context.client[method]({ id }), { text: () => 'ok', quiet: () => id });
    });
}

export function adminCommands(program: Command, contextOf: ContextOf): void {
  const admin = program
    .command('admin')
    .description('remote administration: who may drive this node from afar')
    .addHelpText(
      'after',
      examples(
        'svc admin on && svc admin allow aid1… --expires 12h',
        'svc admin password   # asks for it',
        'svc --via aid1… status   # on the other machine',
      ),
    );
  switchCommands(admin, contextOf);
  listCommands(admin, contextOf);
}
