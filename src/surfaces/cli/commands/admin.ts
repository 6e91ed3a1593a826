/** `svc admin`: who may drive this node from afar, and who did. */
import { relativeTime } from '../../../foundation/plain-words.ts';
import { accessTable, ENTRY, entryLoss, GONE, holdsSecret } from '../access-text.ts';
import { ALLOW, allowInput } from '../allow-options.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { Laid, type Shape } from '../laid.ts';
import { choice, integer } from '../takes.ts';
import { formatTable, safeLine } from '../text.ts';

type State = AnswerOf<'remoteAdminGet'>;

/** Label of the entry that `svc admin password` makes. */
const PASSWORD = 'password';

function stateText(state: State): Shape {
  const now = Date.now();
  const { last_access: access, last_refused: refused } = state;
  const lastAccess = access && `${relativeTime(access.at, now)}, ${access.aid}, ${access.method} ${access.path}`;
  const lastRefused = refused && `${relativeTime(refused.at, now)}, ${refused.aid} (${refused.reason})`;
  const lines = [
    `Remote administration is ${state.enabled ? 'on' : 'off'}.`,
    state.allow.length + state.deny.length > 0 && accessTable(state),
    lastAccess && safeLine(`Last access: ${lastAccess}`),
    lastRefused && safeLine(`Last refused: ${lastRefused}`),
  ];
  return lines.filter((line) => typeof line === 'string' || line instanceof Laid);
}

const STATE = { text: stateText, quiet: ({ enabled }: State) => (enabled ? 'on' : 'off') };

function auditText({ entries }: AnswerOf<'remoteAdminAudit'>): Laid {
  const now = Date.now();
  const rows = entries.map((e) => {
    const what = [e.path ?? e.refused ?? '', ...e.tools].join(' ');
    return [relativeTime(e.at, now), e.aid, e.address, e.method ?? 'refused', what, e.status];
  });
  const none = 'Nothing was asked over remote administration.';
  return formatTable(['AT', 'WHO', 'ADDRESS', 'METHOD', 'PATH', 'STATUS'], rows, none);
}

async function setPassword(context: CliContext, typed: string | undefined) {
  const { client } = context;
  const before = (await client.remoteAdminGet()).allow.filter((e) => e.aid === undefined && e.label === PASSWORD);
  const off = typed === 'off';
  const secret = typed ?? (await context.readSecret('new password: '));
  // The new one first: a failure must not leave the door without a key, nor the old key in the door.
  const kept = off ? undefined : (await client.remoteAdminAllow({ secret, label: PASSWORD })).id;
  for (const { id } of before) if (id !== kept) await client.remoteAdminAllowDelete({ id });
  return { ok: true, password: !off };
}

export function adminCommands(svc: CommandGroup): void {
  const admin = svc.group('admin', 'remote administration: who may drive this node from afar', [
    'svc admin on && svc admin allow aid1… --expires 12h',
    'svc admin password   # asks for it',
    'svc --via aid1… status   # on the other machine',
  ]);
  for (const [name, enabled, about] of [
    ['on', true, 'let those on the list administer this node from afar'],
    ['off', false, 'let nobody in, and cut who is'],
  ] as const)
    admin.call(name, about, {
      operation: 'remoteAdminPatch',
      input: () => ({ enabled }),
      ...STATE,
      remark: ({ allow }) =>
        enabled && allow.length === 0 && 'Nobody is allowed yet: svc admin allow <aid>, or svc admin password.',
    });
  admin.call('status', 'show whether it is on, for whom, and the last access', {
    operation: 'remoteAdminGet',
    watch: true,

    ...STATE,
  });
  admin.call('audit', 'list what was asked and who was refused, the newest first', {
    examples: ['svc admin audit --limit 20'],
    takes: { '--limit <n>': integer('at most so many') },
    operation: 'remoteAdminAudit',
    watch: true,
    text: auditText,
  });
  admin.run('password', 'set the password that lets in who is on no list, or take it away', {
    examples: ['svc admin password   # asks for it', 'svc admin password off'],
    takes: { '[secret]': 'asked for where it is left out; "off" takes it away' },
    run: (context, { secret }) => setPassword(context, secret),
    text: ({ password }) =>
      password ? 'The password is set. Connections that the old one opened are cut.' : 'The password is gone.',
    quiet: ({ password }) => (password ? 'on' : 'off'),
  });
  admin.call('allow [aid]', 'let an AID administer this node, or who presents a secret', {
    examples: ['svc admin allow aid1… --expires 12h', 'svc admin allow --generate   # a secret, shown this once'],
    takes: ALLOW,
    operation: 'remoteAdminAllow',
    input: async ({ aid, ...way }, context) => ({ aid, ...(await allowInput(context, aid, way)) }),
    ...ENTRY,
    once: { holds: holdsSecret, undo: ({ client }, { id }) => client.remoteAdminAllowDelete({ id }) },
  });
  admin.call('deny <aid>', 'refuse an AID, whatever else would let it in; its open connections are cut', {
    operation: 'remoteAdminDeny',
    ...ENTRY,
  });
  admin.run('del', 'take an entry off a list', {
    examples: ['svc admin del allow 7f3a…'],
    takes: { '<list>': choice('allow', 'deny'), '<id>': 'of the entry, as "status" lists it' },
    loses: ({ list, id }) => entryLoss(list, id, `svc admin ${list} <aid>`),
    run: ({ client }, { list, id }) =>
      list === 'allow' ? client.remoteAdminAllowDelete({ id }) : client.remoteAdminDenyDelete({ id }),
    ...GONE,
  });
}
