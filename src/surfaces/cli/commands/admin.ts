/** `svc admin`: remote administration of this node. */
import { relativeTime } from '../../../foundation/display-text.ts';
import {
  ALLOW,
  accessTable,
  allowInput,
  entryText,
  hasSecret,
  NEW_ENTRY,
  REMOVED_ENTRY,
  removalConfirmation,
} from '../access.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { choice } from '../options.ts';
import { formatTable, type OutputText, safeLine, WrappedText } from '../text.ts';

type State = AnswerOf<'remoteAdminGet'>;

/** Label of the entry that `svc admin password` creates. */
const PASSWORD = 'password';

function stateText(state: State): OutputText {
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
  return lines.filter((line) => typeof line === 'string' || line instanceof WrappedText);
}

const STATE = { text: stateText, quiet: ({ enabled }: State) => (enabled ? 'on' : 'off') };

function auditText({ entries }: AnswerOf<'remoteAdminAudit'>): WrappedText {
  const now = Date.now();
  const rows = entries.map((e) => {
    const what = [e.path ?? e.refused ?? '', ...e.tools].join(' ');
    return [relativeTime(e.at, now), e.aid, e.address, e.method ?? 'refused', what, e.status];
  });
  const none = 'No requests over remote administration.';
  return formatTable(['AT', 'WHO', 'ADDRESS', 'METHOD', 'PATH', 'STATUS'], rows, none);
}

async function setPassword(context: CliContext, typed: string | undefined) {
  const { client } = context;
  const before = (await client.remoteAdminGet()).allow.filter((e) => e.aid === undefined && e.label === PASSWORD);
  const off = typed === 'off';
  const secret = typed ?? (await context.readSecret('new password: '));
  // Store the new password first: if this fails, the old one still works.
  const kept = off ? undefined : (await client.remoteAdminAllow({ secret, label: PASSWORD })).id;
  for (const { id } of before) if (id !== kept) await client.remoteAdminAllowDelete({ id });
  return { ok: true, password: !off };
}

export function adminCommands(svc: CommandGroup): void {
  const admin = svc.group('admin', 'remote administration of this node', [
    'svc admin on && svc admin allow aid1… --expires 12h',
    'svc admin password   # prompts for it',
    'svc --via aid1… status   # on the other machine',
  ]);
  for (const [name, enabled, about] of [
    ['on', true, 'allow the agents on the list to administer this node remotely'],
    ['off', false, 'turn remote administration off and close its connections'],
  ] as const)
    admin.call('remoteAdminPatch', name, about, {
      sets: { enabled },
      ...STATE,
      remark: ({ allow }) =>
        enabled &&
        allow.length === 0 &&
        'No one is allowed yet. Add an agent with svc admin allow <aid>, or set a password with svc admin password.',
    });
  const status = 'show the state, the allowed callers, and the last access';
  admin.call('remoteAdminGet', 'status', status, { watch: true, ...STATE });
  admin.call('remoteAdminAudit', 'audit --limit <n>', 'list requests and refusals, newest first', {
    examples: ['svc admin audit --limit 20'],
    help: { limit: 'maximum number of entries' },
    watch: true,
    text: auditText,
  });
  admin.run('password', 'set or remove the password for callers without an entry', {
    examples: ['svc admin password   # prompts for it', 'svc admin password off'],
    options: { '[secret]': 'prompts if omitted; "off" removes the password' },
    run: (context, { secret }) => setPassword(context, secret),
    text: ({ password }) =>
      password ? 'The password is set. Connections opened with the old one are closed.' : 'The password is removed.',
    quiet: ({ password }) => (password ? 'on' : 'off'),
  });
  admin.run('allow [aid]', 'allow an AID, or callers with a secret, to administer this node', {
    examples: ['svc admin allow aid1… --expires 12h', 'svc admin allow --generate   # a secret, shown once'],
    options: ALLOW,
    run: async (context, { aid, ...way }) =>
      context.client.remoteAdminAllow({ aid, ...(await allowInput(context, aid, way)) }),
    ...NEW_ENTRY,
    text: (entry, _, names) => entryText(entry, names, 'may administer this node'),
    once: { holds: hasSecret, undo: ({ client }, { id }) => client.remoteAdminAllowDelete({ id }) },
  });
  const deny = 'deny an AID, even if other entries allow it, and close its open connections';
  admin.call('remoteAdminDeny', 'deny <aid>', deny, {
    ...NEW_ENTRY,
    text: (entry, _, names) => entryText(entry, names, 'may not administer this node'),
  });
  admin.run('rm', 'remove an entry from a list', {
    examples: ['svc admin rm allow 7f3a…'],
    options: { '<list>': choice('allow', 'deny'), '<id>': 'entry ID, as shown by "status"' },
    confirmation: ({ list, id }) => removalConfirmation(list, id, `svc admin ${list} <aid>`),
    run: ({ client }, { list, id }) =>
      list === 'allow' ? client.remoteAdminAllowDelete({ id }) : client.remoteAdminDenyDelete({ id }),
    ...REMOVED_ENTRY,
  });
}
