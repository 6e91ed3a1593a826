/** `svc group`: logs that their members share. */
import { relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { formatFields } from '../text.ts';

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

export function groupCommands(svc: CommandGroup): void {
  const group = svc
    .group('group', 'groups: logs that their members share', [
      'svc group create "Plans for May"',
      'svc group invite 9f2c… aid1…',
      'svc group send 9f2c… "Who can take May?"',
    ])
    .acting();
  group.call('groupCreate', 'create [title]', 'create a group and print its link', {
    examples: ['svc group create "Plans for May"'],
    text: ({ group_id, link }) => formatFields({ group: group_id, link }),
    quiet: 'group_id',
  });
  group.call('groupInvite', 'invite <group> <agent=target_aid>', 'invite an agent', {
    text: ({ delivered }) => (delivered ? 'The invitation was delivered.' : 'The invitation is queued.'),
    quiet: ({ delivered }) => (delivered ? 'delivered' : 'queued'),
  });
  group.run('join <link-or-group>', 'join a group by its link, or by its id after an invitation', {
    examples: ["svc group join 'svc://aid1…/groups/9f2c…#k7…'", 'svc group join 9f2c… --creator aid1…'],
    options: {
      '--creator <aid>': 'the creator of the group, if its ID is given',
      '--peer <aid>': 'the member to contact first',
      '--inviter <aid>': 'the sender of the invitation',
      '--hint <aid...>': 'other members to contact',
    },
    run: ({ client }, { aid, link_or_group: where, creator, peer, inviter, hint }) =>
      client.groupJoin({
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
  group.call('groupRefuse', 'refuse <group>', 'decline a group invitation without notifying anyone', {
    text: 'Declined the invitation.',
  });
  group.call('groupLeave', 'leave <group>', 'leave a group (not possible for its creator)', {
    confirmation: ({ group_id }) => ({
      question: `Leave the group ${group_id}?`,
      consequence: 'To rejoin you need an invitation or the link of the group, which "svc group link" shows now.',
    }),
    text: 'Left the group.',
  });
  group.call('groupList', 'list', 'list the groups of an agent', {
    watch: true,
    table: {
      of: 'groups',
      columns: {
        GROUP: 'group_id',
        TITLE: 'title',
        ROLE: 'role',
        MEMBERS: 'member_count',
        UNREAD: 'unread_count',
        MENTIONS: 'mention_count',
        LAST: 'last_activity_at',
      },
      none: 'No groups yet. Create one with "svc group create".',
    },
  });
  group.call('groupInvitations', 'invitations', 'list the group invitations of an agent, with the command to join', {
    examples: ['svc group invitations'],
    watch: true,
    text: ({ invitations }) =>
      invitations.length === 0 ? 'No invitations.' : invitations.map(invitationText).join('\n'),
    quiet: ({ invitations }) => invitations.map(({ group_id }) => group_id).join('\n'),
  });
  group.call('groupGetLink', 'link <group>', 'show the link of a group; anyone with the link can join', {
    text: ({ link }) => link,
  });
  group.call('groupHead', 'head <group>', 'show title, counters and cursor of a group', {
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
    quiet: 'unread_count',
  });
  group.call('groupMembers', 'members <group>', 'list the members of a group', {
    table: { of: 'members', columns: { AID: 'aid', ROLE: 'role' } },
  });
  group.call(
    'groupAppend',
    'send <group> [text] --kind <kind> --ref <ref> --reply-to <entry> --to <aid...>',
    'add an entry to a group',
    {
      examples: [
        'svc group send 9f2c… "Who can take May?"',
        'svc group send 9f2c… "I can" --reply-to 4be1… --to aid1…',
      ],
      help: {
        kind: 'msg, file, title, remove, role, rekey, or a custom kind',
        ref: 'reference; for a file, the object ID',
        reply_to: 'the entry that this one answers',
      },
      text: ({ seq, entry_id }) => formatFields({ seq, entry: entry_id }),
      quiet: 'entry_id',
    },
  );
  group.call(
    'groupRead',
    'read <group> --after <seq> --limit <count> --kind <kind> --author <aid> --since <time> --until <time> --to <aid> --reply-to <entry>',
    'read the entries of a group, oldest first',
    {
      examples: ['svc group read 9f2c…', 'svc group read 9f2c… --after 17 --author aid1…'],
      help: {
        kind: 'only this kind',
        author: 'only entries of this agent',
        since_ts: 'only entries since this time, ISO 8601',
        until_ts: 'only entries until this time, ISO 8601',
        to: 'only entries that mention this agent',
        reply_to: 'only answers to this entry',
      },
      text: ({ entries }) => (entries.length === 0 ? 'No more entries.' : entries.map(entryText).join('\n')),
      quiet: 'scanned_to_seq',
      remark: ({ has_more, scanned_to_seq }) => has_more && `More entries: --after ${scanned_to_seq}`,
    },
  );
  group.call('groupMarkRead', 'mark-read <group> <seq>', 'mark entries as read', {
    examples: ['svc group mark-read 9f2c… 17'],
    help: { seq: 'the last entry that was read' },
    text: ({ read_cursor, unread_count }) => `Read up to #${read_cursor}; ${unread_count} unread.`,
    quiet: 'read_cursor',
  });
  group.call('groupRetract', 'retract <group> <entry>', 'retract an entry (its author and admins only)', {
    confirmation: ({ entry_id }) => ({
      question: `Withdraw the entry ${entry_id} for all members?`,
      consequence: 'A withdrawn entry cannot be restored. You would have to write it again.',
    }),
    text: 'Withdrew the entry.',
    quiet: 'entry_id',
  });
  group.call('groupSync', 'sync <group> <member=peer_aid>', 'synchronize with one member now', {
    text: ({ added, entry_count }) => `${added} new entries, ${entry_count} in total.`,
    quiet: 'added',
  });
}
