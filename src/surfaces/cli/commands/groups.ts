/** `svc group`: logs that their members share. */
import { relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { type ACTING_AGENT, integer, nextPageHint, PAGE_OPTIONS } from '../options.ts';
import { formatFields, formatTable } from '../text.ts';

type Entry = AnswerOf<'groupRead'>['entries'][number];

function entryText(entry: Entry): string {
  const { seq, at, author, kind, entry_id, ref, to } = entry;
  const body = entry.retracted === true ? '(retracted)' : Buffer.from(entry.body ?? '', 'base64').toString();
  const shown = [body, ref && `ref ${ref}`, to && `to ${to.join(', ')}`].filter(Boolean).join('  ');
  return `#${seq} ${relativeTime(at, Date.now())} ${author} ${kind} ${entry_id}\n    ${shown.replaceAll('\n', '\n    ')}`;
}

function invitationText(one: AnswerOf<'groupInvitations'>['invitations'][number]): string {
  const { group_id, title, inviter, at } = one;
  const what = title === '' ? 'a group without a title' : `"${title}"`;
  return `${inviter} invites you to ${what}, ${relativeTime(at, Date.now())}. Join: svc group join ${group_id.replace('…', '')}`;
}

function ways(group: CommandGroup<typeof ACTING_AGENT>): void {
  group.call('create [title]', 'create a group and print its link', {
    examples: ['svc group create "Plans for May"'],
    operation: 'groupCreate',
    text: ({ group_id, link }) => formatFields({ group: group_id, link }),
    quiet: ({ group_id }) => group_id,
  });
  group.call('invite <group> <agent>', 'invite an agent', {
    operation: 'groupInvite',
    input: ({ agent: target_aid, ...rest }) => ({ ...rest, target_aid }),
    text: ({ delivered }) => (delivered ? 'The invitation was delivered.' : 'The invitation is queued.'),
    quiet: ({ delivered }) => (delivered ? 'delivered' : 'queued'),
  });
  group.call('join <link-or-group>', 'join a group by its link, or by its id after an invitation', {
    examples: ["svc group join 'svc://aid1…/groups/9f2c…#k7…'", 'svc group join 9f2c… --creator aid1…'],
    options: {
      '--creator <aid>': 'the creator of the group, if its ID is given',
      '--peer <aid>': 'the member to contact first',
      '--inviter <aid>': 'the sender of the invitation',
      '--hint <aid...>': 'other members to contact',
    },
    operation: 'groupJoin',
    input: ({ aid, link_or_group: where, creator, peer, inviter, hint }) => ({
      aid,
      ...(where.includes(':') ? { link: where } : { group_id: where }),
      creator_aid: creator,
      peer_aid: peer,
      inviter_aid: inviter,
      member_hints: hint,
    }),
    text: ({ group_id, state, title }) => formatFields({ group: group_id, state, title }),
    quiet: ({ group_id }) => group_id,
  });
  group.call('refuse <group>', 'decline a group invitation without notifying anyone', {
    operation: 'groupRefuse',
    text: () => 'Declined the invitation.',
    quiet: (_, { group_id }) => group_id,
  });
  group.call('leave <group>', 'leave a group (not possible for its creator)', {
    confirmation: ({ group_id }) => ({
      question: `Leave the group ${group_id}?`,
      consequence: 'To rejoin you need an invitation or the link of the group, which "svc group link" shows now.',
    }),
    operation: 'groupLeave',
    text: () => 'Left the group.',
    quiet: (_, { group_id }) => group_id,
  });
}

function looks(group: CommandGroup<typeof ACTING_AGENT>): void {
  group.call('list', 'list the groups of an agent', {
    options: PAGE_OPTIONS,
    operation: 'groupList',
    watch: true,
    remark: (page) => nextPageHint(page),
    text: ({ groups }) =>
      formatTable(
        ['GROUP', 'TITLE', 'ROLE', 'MEMBERS', 'UNREAD', 'MENTIONS', 'LAST'],
        groups.map((g) => [
          g.group_id,
          g.title,
          g.role,
          g.member_count,
          g.unread_count,
          g.mention_count,
          relativeTime(g.last_activity_at, Date.now()),
        ]),
        'No groups yet. Create one with "svc group create".',
      ),
    quiet: ({ groups }) => groups.map(({ group_id }) => group_id).join('\n'),
  });
  group.call('invitations', 'list the group invitations of an agent, with the command to join', {
    examples: ['svc group invitations'],
    operation: 'groupInvitations',
    watch: true,

    text: ({ invitations }) =>
      invitations.length === 0 ? 'No invitations.' : invitations.map(invitationText).join('\n'),
    quiet: ({ invitations }) => invitations.map(({ group_id }) => group_id).join('\n'),
  });
  group.call('link <group>', 'show the link of a group; anyone with the link can join', {
    operation: 'groupGetLink',
    text: ({ link }) => link,
  });
  group.call('head <group>', 'show title, counters and cursor of a group', {
    operation: 'groupHead',
    text: (head) =>
      formatFields({
        title: head.title,
        creator: head.creator,
        role: head.role,
        members: head.member_count,
        entries: head.entry_count,
        unread: head.unread_count,
        mentions: head.mention_count,
        'read up to': head.read_cursor,
        'last activity': relativeTime(head.last_activity_at, Date.now()),
      }),
    quiet: ({ unread_count }) => `${unread_count}`,
  });
  group.call('members <group>', 'list the members of a group', {
    operation: 'groupMembers',
    text: ({ members }) =>
      formatTable(
        ['AID', 'ROLE'],
        members.map(({ aid, role }) => [aid, role]),
      ),
    quiet: ({ members }) => members.map(({ aid }) => aid).join('\n'),
  });
}

function talk(group: CommandGroup<typeof ACTING_AGENT>): void {
  group.call('send <group> [text]', 'add an entry to a group', {
    examples: ['svc group send 9f2c… "Who can take May?"', 'svc group send 9f2c… "I can" --reply-to 4be1… --to aid1…'],
    options: {
      '--kind <kind>': 'msg, file, title, remove, role, rekey, or a custom kind',
      '--ref <ref>': 'reference; for a file, the object ID',
      '--reply-to <entry>': 'the entry that this one answers',
      '--to <aid...>': 'agents to mention',
    },
    operation: 'groupAppend',
    input: ({ text, ...rest }) => ({
      ...rest,
      body: text === undefined ? undefined : Buffer.from(text).toString('base64'),
    }),
    text: ({ seq, entry_id }) => formatFields({ seq, entry: entry_id }),
    quiet: ({ entry_id }) => entry_id,
  });
  group.call('read <group>', 'read the entries of a group, oldest first', {
    examples: ['svc group read 9f2c…', 'svc group read 9f2c… --after 17 --author aid1…'],
    options: {
      '--after <seq>': integer('start after this entry'),
      '--limit <count>': integer('maximum 50'),
      '--kind <kind>': 'only this kind',
      '--author <aid>': 'only entries of this agent',
      '--since <time>': 'only entries since this time, ISO 8601',
      '--until <time>': 'only entries until this time, ISO 8601',
      '--to <aid>': 'only entries that mention this agent',
      '--reply-to <entry>': 'only answers to this entry',
    },
    operation: 'groupRead',
    input: ({ after: after_seq, since: since_ts, until: until_ts, ...rest }) => ({
      ...rest,
      after_seq,
      since_ts,
      until_ts,
    }),
    text: ({ entries }) => (entries.length === 0 ? 'No more entries.' : entries.map(entryText).join('\n')),
    quiet: ({ scanned_to_seq }) => `${scanned_to_seq}`,
    remark: ({ has_more, scanned_to_seq }) => has_more && `More entries: --after ${scanned_to_seq}`,
  });
  group.call('mark-read <group>', 'mark entries as read', {
    examples: ['svc group mark-read 9f2c… 17'],
    options: { '<seq>': integer('the last entry that was read') },
    operation: 'groupMarkRead',
    text: ({ read_cursor, unread_count }) => `Read up to #${read_cursor}; ${unread_count} unread.`,
    quiet: ({ read_cursor }) => `${read_cursor}`,
  });
  group.call('retract <group> <entry>', 'retract an entry (its author and admins only)', {
    confirmation: ({ entry_id }) => ({
      question: `Withdraw the entry ${entry_id} for all members?`,
      consequence: 'A withdrawn entry cannot be restored. You would have to write it again.',
    }),
    operation: 'groupRetract',
    text: () => 'Withdrew the entry.',
    quiet: ({ entry_id }) => entry_id,
  });
  group.call('sync <group> <member>', 'synchronize with one member now', {
    operation: 'groupSync',
    input: ({ member: peer_aid, ...rest }) => ({ ...rest, peer_aid }),
    text: ({ added, entry_count }) => `${added} new entries, ${entry_count} in total.`,
    quiet: ({ added }) => `${added}`,
  });
}

export function groupCommands(svc: CommandGroup): void {
  const group = svc
    .group('group', 'groups: logs that their members share', [
      'svc group create "Plans for May"',
      'svc group invite 9f2c… aid1…',
      'svc group send 9f2c… "Who can take May?"',
    ])
    .acting();
  ways(group);
  looks(group);
  talk(group);
}
