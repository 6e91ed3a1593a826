/** `svc agents acl`: access lists of local agents. */
import { accessTable, hasSecret, NEW_ENTRY, REMOVED_ENTRY, removalConfirmation } from '../access-text.ts';
import { ALLOW, allowInput } from '../allow-options.ts';
import type { CommandGroup } from '../command-group.ts';
import { choice, nextPageHint, PAGE_OPTIONS } from '../options.ts';

/** Adds the commands below `svc agents`. */
export function aclCommands(agents: CommandGroup): void {
  const acl = agents.group('acl', 'access lists for calls, tunnels and objects', [
    'svc agents acl default aid1… deny',
    'svc agents acl allow aid1… --aid bob --expires 7d',
    'svc agents acl allow aid1… --secret   # prompts for it',
  ]);
  acl.call('show <agent>', 'show the access list without its secrets', {
    options: PAGE_OPTIONS,
    operation: 'aclGet',
    input: ({ agent: aid, ...page }) => ({ aid, ...page }),
    remark: (page) => nextPageHint(page),
    text: (lists) => {
      const others =
        lists.default === 'public' ? 'Everyone may call, except denied agents.' : 'Only allowed callers may call.';
      return [others, ...(lists.allow.length + lists.deny.length === 0 ? [] : [accessTable(lists)])];
    },
    quiet: (lists) => lists.default,
  });
  acl.call('default <agent>', 'set the default for callers without an entry: public or deny', {
    examples: ['svc agents acl default aid1… deny'],
    options: { '<policy>': choice('public', 'deny') },
    operation: 'aclPatch',
    input: ({ agent: aid, policy }) => ({ aid, default: policy }),
    json: (_, { policy }) => ({ ok: true, default: policy }),
    text: (_, { policy }) => `Default: ${policy}.`,
    quiet: (_, { policy }) => policy,
  });
  acl.call('allow <agent>', 'allow an AID, or callers that present a secret', {
    examples: [
      'svc agents acl allow aid1… --aid bob --expires 7d',
      'svc agents acl allow aid1… --secret   # prompts for it',
      'svc agents acl allow aid1… --generate --label "for the build server"',
    ],
    options: { '--aid <aid>': 'the AID to allow', ...ALLOW },
    operation: 'aclAllow',
    input: async ({ agent, aid, ...way }, context) => ({
      aid: agent,
      body_aid: aid,
      ...(await allowInput(context, aid, way)),
    }),
    ...NEW_ENTRY,
    once: { holds: hasSecret, undo: ({ client }, { id }, { agent: aid }) => client.aclAllowDelete({ aid, id }) },
  });
  acl.call('deny <agent>', 'deny an AID and close its open connections', {
    examples: ['svc agents acl deny aid1… aid1…'],
    options: { '<aid>': 'the AID to deny; overrides every other entry' },
    operation: 'aclDeny',
    input: ({ agent, aid }) => ({ aid: agent, body_aid: aid }),
    ...NEW_ENTRY,
    remark: ({ id }, { agent }) =>
      `It overrides every allow entry. To remove it: svc agents acl del ${agent} deny ${id}`,
  });
  acl.run('del <agent>', 'remove an entry from a list', {
    examples: ['svc agents acl del aid1… allow 7f3a…'],
    options: { '<list>': choice('allow', 'deny'), '<id>': 'entry ID, as shown by "show"' },
    confirmation: ({ agent, list, id }) =>
      removalConfirmation(list, id, `svc agents acl ${list} ${agent} ${list === 'allow' ? '--aid <aid>' : '<aid>'}`),
    run: ({ client }, { agent: aid, list, id }) =>
      list === 'allow' ? client.aclAllowDelete({ aid, id }) : client.aclDenyDelete({ aid, id }),
    ...REMOVED_ENTRY,
  });
}
