/** The part of the walk for notes, chat, groups and objects. */
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Type } from 'typebox';
import { operations as d } from '../../src/operations/index.ts';
import { AIDS, ANY, HEX, Ok, ONE_AID, SEQ, type Step, type WalkWorld } from './command-step.ts';
import type { TestDaemon } from './daemon.ts';
import { eventually } from './eventually.ts';

const EventLine = Type.Object({
  seq: Type.Integer(),
  type: Type.String(),
  at: Type.String(),
  aid: Type.String(),
  data: Type.Object({}),
});

export async function messageCommands(
  step: Step,
  { here, there }: WalkWorld,
  aid: string,
  peer: string,
): Promise<void> {
  await step(here, ['note', 'send', aid, peer, '--text', 'Guten Tag'], {
    schema: d.mailboxSend.output,
    text: /^message: /,
    quiet: /^\w+$/,
  });
  await eventually('the note is there', async () => {
    const { messages } = await there.call<{ messages: unknown[] }>('GET', `/agents/${peer}/mailbox`);
    return messages.length > 0;
  });
  let second = '';
  const notes = { text: / type 3 \w{8}…\n {4}Guten Tag$/, quiet: /^\w+$/ };
  await step(here, ['note', 'queued', aid], {
    schema: d.mailboxQueued.output,
    text: /^No queued notes\.$/,
    quiet: /^$/,
  });
  await step(there, ['note', 'list', peer], { schema: d.mailboxList.output, ...notes });
  await step(here, ['note', 'send', aid, peer, '--text', 'Noch einer'], {
    schema: d.mailboxSend.output,
    text: /^message:/,
    quiet: /^\w+$/,
  });
  await eventually('the second note is there', async () => {
    const { messages } = await there.call<{ messages: { message_id: string }[] }>('GET', `/agents/${peer}/mailbox`);
    second = messages[1]?.message_id ?? '';
    return second !== '';
  });
  await step(there, ['note', 'rm', peer, second, '-y'], {
    schema: Ok,
    text: /^Deleted the note/,
    quiet: /^[0-9a-f]{64}$/,
  });
  await step(there, ['note', 'poll', peer, '-y'], { schema: d.mailboxPoll.output, ...notes });

  const as = (who: string, ...args: string[]): string[] => ['chat', ...args, '--aid', who];
  const asked = async (other: string): Promise<void> => {
    await eventually('the request is there', async () => {
      const { in_pending } = await there.call<{ in_pending: unknown[] }>('GET', `/agents/${other}/chat/contacts`);
      return in_pending.length > 0;
    });
  };
  const requested = { schema: d.chatRequest.output, text: /^The request was sent/, quiet: /^out_pending$/ };
  await step(here, as(aid, 'request', peer, '--note', 'it is me'), requested);
  await asked(peer);
  await step(there, as(peer, 'accept', aid), { schema: d.chatAccept.output, text: /now friends/, quiet: /^friends$/ });
  await eventually('both are friends', async () => {
    const { friends } = await here.call<{ friends: unknown[] }>('GET', `/agents/${aid}/chat/contacts`);
    return friends.length > 0;
  });
  await step(here, as(aid, 'send', peer, 'Wie geht es?'), {
    schema: d.chatSend.output,
    text: /^#1 (was delivered|goes out)/,
    quiet: /^1$/,
  });
  await eventually('the text is there', async () => {
    const { entries } = await there.call<{ entries: unknown[] }>('GET', `/agents/${peer}/chat/peers/${aid}`);
    return entries.length > 0;
  });
  await step(there, as(peer, 'read', aid), { schema: d.chatRead.output, text: / <\n {4}Wie geht es\?$/, quiet: SEQ });
  await step(there, as(peer, 'mark-read', aid), { schema: d.chatMarkRead.output, text: /; 0 unread/, quiet: SEQ });
  await step(there, as(peer, 'contacts'), { schema: d.chatContacts.output, text: /friend/, quiet: ONE_AID });
  await step(there, as(peer, 'rm', aid, '-y'), { schema: Ok, text: /^Done/, quiet: /^ok$/ });
  const shy = await there.newAgent();
  await there.call('POST', `/agents/${shy}/publish`);
  await here.call('POST', `/agents/${aid}/chat/request`, { peer: shy });
  await asked(shy);
  await step(there, as(shy, 'refuse', aid), { schema: Ok, text: /^Refused/, quiet: /^ok$/ });
  await step(there, as(shy, 'block', aid, '-y'), { schema: Ok, text: /^Blocked/, quiet: /^ok$/ });
  await step(there, ['events', '--node'], { schema: null, text: /agent\.registered/, quiet: /agent\.registered/ });
  await step(there, ['events', '--aid', peer], {
    schema: EventLine,
    lines: true,
    text: /mailbox\.received/,
    quiet: /mailbox\.received/,
  });
}

export async function groupCommands(step: Step, { here, there }: WalkWorld, aid: string, peer: string): Promise<void> {
  const mine = (...args: string[]): string[] => ['group', ...args, '--aid', aid];
  await step(here, mine('create', 'Plans'), { schema: d.groupCreate.output, text: /^group: /, quiet: HEX });
  const { groups } = await here.call<{ groups: { group_id: string; creator: string }[] }>(
    'GET',
    `/agents/${aid}/groups`,
  );
  const group = groups[0]?.group_id ?? '';
  const tool = (at: TestDaemon, name: string, args: object) => at.call('POST', '/mcp/call', { tool: name, args });
  await step(here, mine('link', group), { schema: d.groupGetLink.output, text: /^svc:\/\//, quiet: /^svc:\/\// });
  await step(here, mine('invite', group, peer), {
    schema: d.groupInvite.output,
    text: /invitation/,
    quiet: /^(delivered|queued)$/,
  });
  await eventually('the invitation is there', async () => {
    const path = `/agents/${peer}/group-invitations`;
    return (await there.call<{ invitations: unknown[] }>('GET', path)).invitations.length > 0;
  });
  await step(there, ['group', 'invitations', '--aid', peer], {
    schema: d.groupInvitations.output,
    text: /invites you to "Plans", .* ago\. Join: svc group join [0-9a-f]{8}$/,
    quiet: HEX,
  });
  await step(there, ['group', 'refuse', group, '--aid', peer], {
    schema: Ok,
    text: /^Declined the invitation/,
    quiet: HEX,
  });
  const { link } = (await tool(here, 'group_get_link', { aid, group_id: group })) as { link: string };
  await step(there, ['group', 'join', link, '--aid', peer], {
    schema: d.groupJoin.output,
    text: /^group: /,
    quiet: HEX,
  });
  await eventually('both are members', async () => {
    const { members } = (await tool(here, 'group_members', { aid, group_id: group })) as { members: unknown[] };
    return members.length === 2;
  });
  await step(here, mine('send', group, 'Who can?'), { schema: d.groupAppend.output, text: /entry: +\w/, quiet: HEX });
  await step(here, mine('read', group, '--kind', 'msg'), {
    schema: d.groupRead.output,
    text: / msg [0-9a-f]{8}…\n {4}Who can\?/,
    quiet: SEQ,
  });
  const page = await here.call<{ entries: { kind: string; entry_id: string }[] }>(
    'GET',
    `/agents/${aid}/groups/${group}/entries`,
  );
  const entry = page.entries.find(({ kind }) => kind === 'msg')?.entry_id ?? '';
  await step(here, mine('mark-read', group, '1'), { schema: d.groupMarkRead.output, text: /unread/, quiet: SEQ });
  await step(here, mine('retract', group, entry, '-y'), {
    schema: d.groupRetract.output,
    text: /^Withdrew the entry/,
    quiet: HEX,
  });
  await step(here, mine('head', group), { schema: d.groupHead.output, text: /title: +Plans/, quiet: SEQ });
  await step(here, mine('members', group), { schema: d.groupMembers.output, text: /^AID +ROLE/, quiet: AIDS });
  await step(here, mine('list'), { schema: d.groupList.output, text: /^GROUP +TITLE/, quiet: HEX });
  await step(here, mine('sync', group, peer), { schema: d.groupSync.output, text: /in total/, quiet: SEQ });
  await step(there, ['group', 'leave', group, '--aid', peer, '-y'], {
    schema: d.groupLeave.output,
    text: /Left the group/,
    quiet: HEX,
  });
}

export async function objectCommands(step: Step, { here, directory }: WalkWorld, aid: string): Promise<void> {
  const mine = (...args: string[]): string[] => ['object', ...args, '--aid', aid];
  const file = join(directory, 'plan.txt');
  const text = `the plan of ${aid}`;
  writeFileSync(file, text);
  const id = createHash('sha256').update(text).digest('hex');
  const stored = {
    schema: d.objectPut.output,
    text: /^object: +[0-9a-f]{64}\nsize: +\d+ bytes\nurl: +svc:/,
    quiet: HEX,
  };
  await step(here, mine('put', file), stored);
  const { files_root } = await here.call<{ files_root: string }>('GET', '/status');
  writeFileSync(join(files_root, `${aid}.txt`), 'in place');
  await step(here, mine('add', `${aid}.txt`), stored);
  await step(here, mine('add', file), stored);
  await step(here, mine('list'), {
    schema: d.objectList.output,
    text: /^OBJECT +SIZE +NAME[\s\S]* plan\.txt /,
    quiet: /^([0-9a-f]{64}\n?)+$/,
  });
  await step(here, mine('locate', id), { schema: d.objectLocate.output, text: /^It is stored here/, quiet: ANY });
  await step(here, mine('get', id, '--dest', `${aid}.copy`), {
    schema: d.objectGet.output,
    text: /\.copy, \d+ bytes/,
    quiet: /\.copy$/,
  });
  await step(here, mine('rm', id, '-y'), { schema: Ok, text: /^Deleted the object/, quiet: HEX });
}

const Received = Type.Object({
  offered: Type.Integer(),
  received: Type.Array(
    Type.Object({
      offer_id: Type.String(),
      object_id: Type.String(),
      from: Type.String(),
      name: Type.String(),
      size: Type.Integer(),
      path: Type.String(),
    }),
  ),
});

export async function fileCommands(
  step: Step,
  { here, there, directory }: WalkWorld,
  aid: string,
  peer: string,
): Promise<void> {
  const file = join(directory, 'offered.txt');
  const come = (): Promise<string> =>
    eventually('the offer arrived', async () => {
      const { offers } = await there.call<{ offers: { id: string }[] }>('GET', `/agents/${peer}/file-offers`);
      return offers[0]?.id;
    });
  const send = async (text: string): Promise<string> => {
    writeFileSync(file, `${text} of ${aid}`);
    await step(here, ['send', file, peer, '--aid', aid, '-m', 'for you', '--no-wait'], {
      schema: Type.Intersect([d.fileOfferGet.output, Type.Object({ delivered: Type.Boolean() })]),
      text: /^Offered offered\.txt \(\d+ bytes\) to /,
      quiet: /^[0-9a-f]{16}$/,
    });
    return come();
  };
  await send('one');
  await step(there, ['files', 'list', '--aid', peer], {
    schema: d.fileOfferList.output,
    text: /^ID +AGENT +NAME[\s\S]* offered\.txt: for you +\d+ bytes /,
    quiet: /^[0-9a-f]{16}$/,
  });
  await step(there, ['receive', '--aid', peer, '-y', '--into', directory], {
    schema: Received,
    text: /^FILE +SIZE +FROM\n\S+offered \(\d+\)\.txt /,
    quiet: /offered \(\d+\)\.txt$/,
  });
  const declined = await send('two');
  await step(there, ['files', 'decline', declined, '--aid', peer], {
    schema: d.fileOfferDecline.output,
    text: /^Declined offered\.txt/,
    quiet: /^[0-9a-f]{16}$/,
  });
  const withdrawn = await send('three');
  await step(here, ['files', 'rm', withdrawn, '--aid', aid], {
    schema: d.fileOfferWithdraw.output,
    text: /is no longer offered/,
    quiet: /^[0-9a-f]{16}$/,
  });
}
