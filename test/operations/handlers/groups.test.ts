import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Compile } from 'typebox/compile';
import { groupOperations } from '../../../src/operations/groups.ts';
import { groupHandlers } from '../../../src/operations/handlers/groups.ts';
import { bind, type CallContext } from '../../../src/operations/operation.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { type GroupNode, GroupWorld, groupOf } from '../../support/group-world.ts';
import { ACT_ONCE, READ_ONCE } from '../../support/read-once.ts';

const CONTEXT: CallContext = {
  origin: 'local',
  signal: new AbortController().signal,
  requireToken: () => {},
  setStatus: () => {},
};

/** Calls the tools of a node and checks each result against its schema. */
function toolsOf(world: GroupWorld, node: GroupNode) {
  const table = new ToolTable({
    operations: bind(groupOperations, groupHandlers({ groups: node.groups, waits: READ_ONCE, repeats: ACT_ONCE })),
    pending: () => ({}),
  });
  const schemas = new Map(table.list().map(({ name, outputSchema }) => [name, Compile(outputSchema)]));
  return async (name: string, args: object = {}): Promise<Record<string, unknown>> => {
    const answer = await world.during(table.call(name, { aid: node.aid, ...args }, CONTEXT));
    const output = JSON.parse(JSON.stringify(answer)) as Record<string, unknown>;
    assert.ok(schemas.get(name)?.Check(output), `${name}: ${JSON.stringify(output)}`);
    return output;
  };
}

test('the tools of groups work under the names of the API', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const [asAnn, asBen] = [toolsOf(world, ann), toolsOf(world, ben)];
  const { group_id, link } = await asAnn('group_create', { title: 'Plans' });
  assert.deepEqual(await asAnn('group_get_link', { group_id }), { link });
  assert.deepEqual(await asAnn('group_invite', { group_id, target_aid: ben.aid }), { ok: true, delivered: true });
  const invited = groupHandlers({ groups: ben.groups, waits: READ_ONCE, repeats: ACT_ONCE });
  const [invitation, ...others] = (await invited.groupInvitations({ aid: ben.aid }, CONTEXT)).invitations;
  assert.deepEqual(others, []);
  const { at: _, ...rest } = invitation ?? { at: '' };
  assert.deepEqual(rest, { group_id, title: 'Plans', creator: ann.aid, inviter: ann.aid });
  const refused = { aid: ben.aid, group_id: String(group_id) };
  assert.deepEqual(await invited.groupRefuse(refused, CONTEXT), { ok: true });
  assert.deepEqual(await invited.groupInvitations({ aid: ben.aid }, CONTEXT), { invitations: [] });
  await assert.rejects(async () => invited.groupRefuse(refused, CONTEXT), { code: 'not_found' });
  const joined = await asBen('group_join', { group_id, creator_aid: ann.aid, inviter_aid: ann.aid, member_hints: [] });
  assert.deepEqual(joined, { group_id, state: 'joined', title: 'Plans' });
  assert.deepEqual(await invited.groupInvitations({ aid: ben.aid }, CONTEXT), { invitations: [] });
  const body = Buffer.from('hello').toString('base64');
  const { entry_id } = await asAnn('group_append', { group_id, body, to: [ben.aid] });
  await world.until('the message', () => ben.texts(String(group_id)).length === 1);
  const { groups } = await asBen('group_list');
  assert.ok(Array.isArray(groups) && groups.length === 1);
  assert.deepEqual([groups[0].unread_count, groups[0].mention_count, groups[0].role], [1, 1, 'member']);
  assert.deepEqual(groups[0].last, { author: ann.aid, at: groups[0].last_activity_at, kind: 'msg', text: 'hello' });
  const over = groupHandlers({ groups: ben.groups, waits: READ_ONCE, repeats: ACT_ONCE });
  const second = await asBen('group_create', { title: 'Second' });
  const { next_cursor: cursor, ...firstPage } = await over.groupList({ aid: ben.aid, limit: 1 }, CONTEXT);
  const nextPage = await over.groupList(
    { aid: ben.aid, limit: 1, ...(cursor === undefined ? {} : { cursor }) },
    CONTEXT,
  );
  assert.deepEqual(
    [firstPage, nextPage].map(({ groups: page }) => page.map((group) => group.group_id)),
    [[group_id], [second['group_id']]],
  );
  assert.equal(nextPage.next_cursor, undefined);
  const { last_seq } = groups[0] as { last_seq: number };
  const before = async (before_seq: number, limit?: number) => {
    const input = { aid: ben.aid, group_id: String(group_id), before_seq, ...(limit === undefined ? {} : { limit }) };
    const { entries, ...rest } = await over.groupEntries(input, CONTEXT);
    return { seqs: entries.map(({ seq }) => seq), more: rest.has_more };
  };
  assert.deepEqual(await before(last_seq + 1, 1), { seqs: [last_seq], more: true });
  assert.deepEqual(await before(last_seq, 1), { seqs: [last_seq - 1], more: true });
  const all = Array.from({ length: last_seq }, (_unused, i) => i + 1);
  assert.deepEqual(await before(last_seq + 1), { seqs: all, more: false });
  assert.deepEqual(await before(1), { seqs: [], more: false });
  const both = { aid: ben.aid, group_id: String(group_id), before_seq: 2, after_seq: 1 };
  await assert.rejects(async () => over.groupEntries(both, CONTEXT), { code: 'invalid_request' });
  const page = await asBen('group_read', { group_id, to: ben.aid, since_ts: '2026-01-01T00:00:00Z', kind: 'msg' });
  assert.ok(Array.isArray(page['entries']) && page['entries'].length === 1);
  assert.deepEqual([page['entries'][0].entry_id, page['entries'][0].body], [entry_id, body]);
  const [{ timestamp, at: writtenAt }] = page['entries'];
  assert.equal(timestamp, writtenAt);
  assert.equal(timestamp, new Date(Date.parse(timestamp)).toISOString());
  const { max_seq } = await asBen('group_head', { group_id });
  assert.equal(page['scanned_to_seq'], max_seq);
  assert.deepEqual(await asBen('group_mark_read', { group_id, seq: max_seq }), {
    read_cursor: max_seq,
    unread_count: 0,
  });
  assert.deepEqual(await asBen('group_mark_read', { group_id, seq: 0 }), { read_cursor: max_seq, unread_count: 0 });
  assert.equal((await asBen('group_sync', { group_id, peer_aid: ann.aid }))['ok'], true);
  await assert.rejects(asBen('group_retract', { group_id, entry_id }), { code: 'access_denied' });
  await asAnn('group_retract', { group_id, entry_id });
  const { members } = await asAnn('group_members', { group_id });
  assert.deepEqual(members, [
    { aid: ann.aid, role: 'creator' },
    { aid: ben.aid, role: 'member' },
  ]);
  await world.stop();
});

test('invalid input is refused with its code', async () => {
  const world = new GroupWorld();
  const [ann, ben] = [await world.node(), await world.node()];
  const asAnn = toolsOf(world, ann);
  const group_id = await groupOf(world, [ann, ben]);
  const tooLong = Buffer.alloc(2049).toString('base64');
  await asAnn('group_append', { group_id, body: Buffer.alloc(2048).toString('base64') });
  await assert.rejects(asAnn('group_append', { group_id, body: tooLong }), { code: 'too_large' });
  await assert.rejects(asAnn('group_append', { group_id, body: '*' }), { code: 'invalid_request' });
  for (const kind of ['join', 'create', 'invite', 'leave', 'key', 'Bad kind'])
    await assert.rejects(asAnn('group_append', { group_id, kind, to: [ben.aid] }), { code: 'invalid_request' }, kind);
  await assert.rejects(asAnn('group_head', { group_id: '0'.repeat(64) }), { code: 'not_found' });
  await assert.rejects(asAnn('group_join', { link: 'svc://nobody' }), { code: 'invalid_request' });
  await assert.rejects(asAnn('group_join', {}), { code: 'invalid_request' });
  await assert.rejects(asAnn('group_invite', { group_id, target_aid: ann.aid }), { code: 'self' });
  await assert.rejects(asAnn('group_read', { group_id, limit: 51 }), { code: 'invalid_request' });
  await world.stop();
});

test('an entry can be given as text, and the result has both text and base64', async () => {
  const world = new GroupWorld();
  const call = toolsOf(world, await world.node());
  const { group_id } = await call('group_create', {});
  const { seq } = await call('group_append', { group_id, text: 'Grüße' });
  const { entries } = await call('group_read', { group_id, after_seq: Number(seq) - 1, wait_s: 1 });
  assert.partialDeepStrictEqual(entries, [{ seq, kind: 'msg', body: 'R3LDvMOfZQ==', text: 'Grüße' }]);
  await assert.rejects(call('group_append', { group_id, text: 'a', body: 'YQ==' }), { code: 'invalid_request' });
  await assert.rejects(call('group_append', { group_id, text: 'ü'.repeat(1025) }), { code: 'too_large' });
});
