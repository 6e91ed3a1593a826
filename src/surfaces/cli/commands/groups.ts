/** `svc group`: logs that their members share. */
import type { Command } from 'commander';
import type { OutputOf } from '../../../operations/operation.ts';
import { roomOperations } from '../../../operations/rooms.ts';
import type { ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { formatFields, formatTable, safeText } from '../text.ts';
import { addToolCommand, aidOf, aidsOf, type Typed } from '../tool-command.ts';
import { integer } from '../values.ts';

interface ReadOptions {
  readonly after?: number;
  readonly limit?: number;
  readonly kind?: string;
  readonly author?: string;
  readonly since?: string;
  readonly until?: string;
  readonly to?: string;
  readonly replyTo?: string;
}

interface SendOptions {
  readonly kind?: string;
  readonly ref?: string;
  readonly replyTo?: string;
  readonly to?: readonly string[];
}

interface JoinOptions {
  readonly creator?: string;
  readonly peer?: string;
  readonly inviter?: string;
  readonly hint?: readonly string[];
}

type Entry = OutputOf<typeof roomOperations.groupRead>['entries'][number];

/** What others wrote is shown, never obeyed: `safeText` escapes what a terminal would act on. */
function entryText(entry: Entry): string {
  const body = entry.retracted === true ? '(retracted)' : Buffer.from(entry.body ?? '', 'base64').toString();
  const about = [
    entry.ref === undefined ? '' : `ref ${entry.ref}`,
    entry.to === undefined ? '' : `to ${entry.to.join(', ')}`,
  ];
  const shown = [body, ...about].filter((text) => text !== '').join('  ');
  return safeText(
    `#${entry.seq} ${entry.at} ${entry.author} ${entry.kind} ${entry.entry_id}\n    ${shown.replaceAll('\n', '\n    ')}`,
  );
}

/** The group that most commands begin with. */
function groupOf({ words: [group_id] }: Typed<object>) {
  return { group_id };
}

function ways(group: Command, contextOf: ContextOf): void {
  addToolCommand(group, contextOf, {
    usage: 'create [title]',
    about: 'make a group and print its link',
    operation: roomOperations.groupCreate,
    examples: ['svc group create "Plans for May"'],
    input: ({ words: [title] }) => ({ title }),
    view: {
      text: ({ group_id, link }) =>
        formatFields([
          ['group', group_id],
          ['link', link],
        ]),
      quiet: ({ group_id }) => group_id,
    },
  });
  addToolCommand(group, contextOf, {
    usage: 'invite <group> <agent>',
    about: 'invite an agent',
    operation: roomOperations.groupInvite,
    examples: ['svc group invite 9f2c… aid1…'],
    input: async (typed, context) => ({ ...groupOf(typed), target_aid: await aidOf(context, typed.words[1]) }),
    view: {
      text: ({ delivered }) => (delivered ? 'The invitation was delivered.' : 'The invitation is on its way.'),
      quiet: ({ delivered }) => (delivered ? 'delivered' : 'queued'),
    },
  });
  addToolCommand<typeof roomOperations.groupJoin, JoinOptions>(group, contextOf, {
    usage: 'join <link-or-group>',
    about: 'join a group by its link, or by its id after an invitation',
    operation: roomOperations.groupJoin,
    examples: ["svc group join 'svc://aid1…/groups/9f2c…#k7…'", 'svc group join 9f2c… --creator aid1…'],
    declare: (command) =>
      command
        .option('--creator <aid>', 'who made the group, where its id is given')
        .option('--peer <aid>', 'a member to ask first')
        .option('--inviter <aid>', 'who sent the invitation')
        .option('--hint <aid...>', 'other members to ask'),
    input: async ({ words: [where = ''], options }, context) => ({
      ...(where.includes(':') ? { link: where } : { group_id: where }),
      creator_aid: await aidOf(context, options.creator),
      peer_aid: await aidOf(context, options.peer),
      inviter_aid: await aidOf(context, options.inviter),
      member_hints: await aidsOf(context, options.hint),
    }),
    view: {
      text: ({ group_id, state, title }) =>
        formatFields([
          ['group', group_id],
          ['state', state],
          ['title', title],
        ]),
      quiet: ({ group_id }) => group_id,
    },
  });
  group
    .command('leave <group>')
    .description('leave a group; its creator cannot')
    .addHelpText('after', examples('svc group leave 9f2c…'))
    .option('--aid <aid>', 'the local agent; may be left out where there is only one')
    .action(async (group_id: string, options: { aid?: string }, command: Command) => {
      const context = contextOf(command);
      const aid = await context.localAgent(options.aid);
      context.show(await context.client.groupLeave({ aid, group_id }), {
        text: () => 'The agent has left the group.',
        quiet: () => group_id,
      });
    });
}

function looks(group: Command, contextOf: ContextOf): void {
  addToolCommand(group, contextOf, {
    usage: 'list',
    about: 'the groups of an agent',
    operation: roomOperations.groupList,
    examples: ['svc group list'],
    view: {
      text: ({ groups: all }) =>
        all.length === 0
          ? 'No groups yet. Make one with "svc group create".'
          : formatTable(
              ['GROUP', 'TITLE', 'ROLE', 'MEMBERS', 'UNREAD', 'MENTIONS', 'LAST'],
              all.map((one) => [
                one.group_id,
                one.title,
                one.role,
                `${one.member_count}`,
                `${one.unread_count}`,
                `${one.mention_count}`,
                one.last_activity_at,
              ]),
            ),
      quiet: ({ groups: all }) => all.map(({ group_id }) => group_id).join('\n'),
    },
  });
  addToolCommand(group, contextOf, {
    usage: 'link <group>',
    about: 'the link of a group: who has it can join',
    operation: roomOperations.groupGetLink,
    examples: ['svc group link 9f2c…'],
    input: groupOf,
    view: { text: ({ link }) => link },
  });
  addToolCommand(group, contextOf, {
    usage: 'head <group>',
    about: 'title, counters and cursor of a group',
    operation: roomOperations.groupHead,
    examples: ['svc group head 9f2c…'],
    input: groupOf,
    view: {
      text: (head) =>
        formatFields([
          ['title', head.title],
          ['creator', head.creator],
          ['role', head.role],
          ['members', head.member_count],
          ['entries', head.entry_count],
          ['unread', head.unread_count],
          ['mentions', head.mention_count],
          ['read up to', head.read_cursor],
          ['last activity', head.last_activity_at],
        ]),
      quiet: (head) => `${head.unread_count}`,
    },
  });
  addToolCommand(group, contextOf, {
    usage: 'members <group>',
    about: 'the members of a group',
    operation: roomOperations.groupMembers,
    examples: ['svc group members 9f2c…'],
    input: groupOf,
    view: {
      text: ({ members }) =>
        formatTable(
          ['AID', 'ROLE'],
          members.map(({ aid, role }) => [aid, role]),
        ),
      quiet: ({ members }) => members.map(({ aid }) => aid).join('\n'),
    },
  });
}

function talk(group: Command, contextOf: ContextOf): void {
  addToolCommand<typeof roomOperations.groupAppend, SendOptions>(group, contextOf, {
    usage: 'send <group> [text]',
    about: 'add an entry to a group',
    operation: roomOperations.groupAppend,
    examples: ['svc group send 9f2c… "Who can take May?"', 'svc group send 9f2c… "I can" --reply-to 4be1… --to aid1…'],
    declare: (command) =>
      command
        .option('--kind <kind>', 'msg, file, title, remove, role, rekey, or a kind of your own')
        .option('--ref <ref>', 'what it refers to; with file, an object id')
        .option('--reply-to <entry>', 'the entry that it answers')
        .option('--to <aid...>', 'who is mentioned'),
    input: async ({ words: [group_id, text], options }, context) => ({
      group_id,
      kind: options.kind,
      body: text === undefined ? undefined : Buffer.from(text).toString('base64'),
      ref: options.ref,
      reply_to: options.replyTo,
      to: await aidsOf(context, options.to),
    }),
    view: {
      text: ({ seq, entry_id }) =>
        formatFields([
          ['seq', seq],
          ['entry', entry_id],
        ]),
      quiet: ({ entry_id }) => entry_id,
    },
  });
  addToolCommand<typeof roomOperations.groupRead, ReadOptions>(group, contextOf, {
    usage: 'read <group>',
    about: 'entries of a group, oldest first',
    operation: roomOperations.groupRead,
    examples: ['svc group read 9f2c…', 'svc group read 9f2c… --after 17 --author aid1…'],
    declare: (command) =>
      command
        .option('--after <seq>', 'begin behind this one', integer)
        .option('--limit <count>', 'at most 50', integer)
        .option('--kind <kind>', 'only this kind')
        .option('--author <aid>', 'only by this agent')
        .option('--since <time>', 'not before, ISO 8601')
        .option('--until <time>', 'not after, ISO 8601')
        .option('--to <aid>', 'only those that mention this agent')
        .option('--reply-to <entry>', 'only answers to this entry'),
    input: async ({ words: [group_id], options }, context) => ({
      group_id,
      after_seq: options.after,
      limit: options.limit,
      kind: options.kind,
      author: await aidOf(context, options.author),
      since_ts: options.since,
      until_ts: options.until,
      to: await aidOf(context, options.to),
      reply_to: options.replyTo,
    }),
    view: {
      text: ({ entries }) => (entries.length === 0 ? 'Nothing more.' : entries.map(entryText).join('\n')),
      quiet: ({ scanned_to_seq }) => `${scanned_to_seq}`,
    },
    remark: (page) => (page.has_more ? `More entries follow: --after ${page.scanned_to_seq}` : undefined),
  });
  addToolCommand(group, contextOf, {
    usage: 'mark-read <group>',
    about: 'mark entries as read up to a number',
    operation: roomOperations.groupMarkRead,
    examples: ['svc group mark-read 9f2c… 17'],
    declare: (command) => command.argument('<seq>', 'the last one that was read', integer),
    input: (typed) => ({ ...groupOf(typed), seq: typed.words[1] }),
    view: {
      text: ({ read_cursor, unread_count }) => `Read up to #${read_cursor}; ${unread_count} unread.`,
      quiet: ({ read_cursor }) => `${read_cursor}`,
    },
  });
  addToolCommand(group, contextOf, {
    usage: 'retract <group> <entry>',
    about: 'withdraw an entry: for its author and for admins',
    operation: roomOperations.groupRetract,
    examples: ['svc group retract 9f2c… 4be1…'],
    input: (typed) => ({ ...groupOf(typed), entry_id: typed.words[1] }),
    view: { text: () => 'The entry was retracted.', quiet: ({ entry_id }) => entry_id },
  });
  addToolCommand(group, contextOf, {
    usage: 'sync <group> <member>',
    about: 'compare with one member now',
    operation: roomOperations.groupSync,
    examples: ['svc group sync 9f2c… aid1…'],
    input: async (typed, context) => ({ ...groupOf(typed), peer_aid: await aidOf(context, typed.words[1]) }),
    view: {
      text: ({ added, entry_count }) => `${added} new entries, ${entry_count} in all.`,
      quiet: ({ added }) => `${added}`,
    },
  });
}

export function groupCommands(program: Command, contextOf: ContextOf): void {
  const group = program
    .command('group')
    .description('groups: logs that their members share')
    .addHelpText(
      'after',
      examples(
        'svc group create "Plans for May"',
        'svc group invite 9f2c… aid1…',
        'svc group send 9f2c… "Who can take May?"',
      ),
    );
  ways(group, contextOf);
  looks(group, contextOf);
  talk(group, contextOf);
}
