import assert from 'node:assert/strict';
import { test } from 'node:test';
import { resolveId, uniquePrefixLength } from '../../../src/surfaces/cli/names.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

const { aid } = newIdentity();
const WHOLE = /^[0-9a-f]{64}$/;
const ONE = `12345678a${'0'.repeat(55)}`;
const TWO = `12345678b${'0'.repeat(55)}`;
const OTHER = 'fe'.repeat(32);

test('shows unique prefixes of IDs', () => {
  assert.equal(uniquePrefixLength([]), 8);
  assert.equal(uniquePrefixLength([ONE, OTHER]), 8);
  assert.equal(uniquePrefixLength([ONE, TWO, OTHER, ONE]), 9);
});

test('resolves a unique prefix, and returns a complete ID unchanged', async () => {
  let asked = 0;
  const listed = { noun: 'group', command: '"svc group list"', ids: async () => (asked++, [ONE, TWO, OTHER]) };
  assert.equal(await resolveId(ONE, WHOLE, listed), ONE);
  assert.equal(asked, 0);
  assert.equal(await resolveId('FEFE…', WHOLE, listed), OTHER);
  assert.equal(await resolveId('12345678b', WHOLE, listed), TWO);
  await assert.rejects(resolveId('1234', WHOLE, listed), {
    code: 'invalid_request',
    message: /2 IDs: 12345678a, 12345678b/,
  });
  await assert.rejects(resolveId('0000', WHOLE, listed), { code: 'not_found', message: /"svc group list" lists them/ });
  for (const wrong of ['fef', 'plans', ''])
    await assert.rejects(resolveId(wrong, WHOLE, listed), {
      code: 'invalid_request',
      message: /is not a group\. Type its ID/,
    });
});

test('commands accept ID prefixes of groups, entries, objects, tunnels and lists', async (t) => {
  const ID = '0123456789abcdef';
  const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
  const tools: Record<string, unknown> = {
    group_list: { groups: [{ group_id: ONE }] },
    group_head: { max_seq: 1 },
    group_read: { entries: [{ entry_id: TWO }], has_more: false },
    group_retract: { seq: 1, entry_id: TWO, at: '' },
  };
  const sent: { tool: string; args: Record<string, unknown> }[] = [];
  const answers: Record<string, unknown> = {
    [`GET /agents/${aid}/group-invitations`]: { invitations: [{ group_id: OTHER }] },
    [`GET /agents/${aid}/cas?limit=1000`]: { objects: [{ object_id: ONE }] },
    'GET /tunnel': { tunnels: [{ id: ID }] },
    'GET /traces?limit=200': { traces: [{ trace_id: TRACE }] },
    [`GET /traces/${TRACE}`]: { trace_id: TRACE, started_at: '', spans: [], missing: [] },
    'GET /node/remote-admin': { allow: [{ id: ID }], deny: [] },
    [`GET /agents/${aid}/acl`]: { allow: [], deny: [{ id: ID }] },
  };
  const daemon = await AnsweringDaemon.start(t, (line, body) => {
    if (line !== 'POST /mcp/call') return [200, answers[line] ?? { ok: true }];
    const call = body as { tool: string; args: Record<string, unknown> };
    sent.push(call);
    return [200, tools[call.tool] ?? { group_id: OTHER, state: 'joined', title: '' }];
  });
  const run = async (line: string): Promise<string | undefined> => {
    const { code, stderr } = await runSvc(line.split(' '), { env: { SVC_API: daemon.api } });
    assert.equal(code, 0, `${line}: ${stderr}`);
    return daemon.asked.splice(0).at(-1);
  };
  await run(`group retract 1234 12345678b -y --aid ${aid}`);
  assert.deepEqual(sent.at(-1)?.args, { aid, group_id: ONE, entry_id: TWO });
  await run(`group join fefe --aid ${aid}`);
  assert.equal(sent.at(-1)?.args['group_id'], OTHER);
  assert.equal(await run(`object del 1234 -y --aid ${aid}`), `DELETE /agents/${aid}/cas/${ONE}`);
  assert.equal(await run('tunnel reset 0123'), `POST /tunnel/${ID}/reset`);
  assert.equal(await run('trace 4bf9'), `GET /traces/${TRACE}`);
  const wrong = await runSvc(['trace', 'nothing'], { env: { SVC_API: daemon.api } });
  assert.match(wrong.stderr, /"nothing" is not a trace\. Type its ID, .* "svc trace" lists them\./);
  assert.equal(await run('admin del allow 0123 -y'), `DELETE /node/remote-admin/allow/${ID}`);
  assert.equal(await run(`agents acl del ${aid} deny 0123 -y`), `DELETE /agents/${aid}/acl/deny/${ID}`);
});

test('an agent stands for its only request, entry or tunnel', async (t) => {
  const [laptop, phone, other, ada] = [newIdentity().aid, newIdentity().aid, newIdentity().aid, newIdentity().aid];
  const [A, B, C] = ['0123456789abcdef', '1123456789abcdef', '2123456789abcdef'];
  const answers: Record<string, unknown> = {
    'GET /node/address-book': {
      aliases: { [laptop]: 'laptop', [phone]: 'phone', [other]: 'abba', [ada]: 'ada' },
      favorites: [],
    },
    'GET /access/requests': {
      requests: [
        { id: A, caller: laptop, kind: 'call', asked: 'GET /' },
        { id: B, caller: phone, kind: 'call', asked: 'GET /' },
        { id: C, caller: phone, kind: 'tunnel', asked: '' },
      ],
    },
    [`GET /agents/${aid}/acl`]: { allow: [{ id: A, aid: laptop }], deny: [] },
    'GET /tunnel': { tunnels: [{ id: A, remote_aid: laptop, listen: '' }] },
  };
  const daemon = await AnsweringDaemon.start(t, (line) => [200, answers[line] ?? { ok: true }]);
  const svc = (line: string) => runSvc(line.split(' '), { env: { SVC_API: daemon.api } });
  for (const [line, request] of [
    ['access allow laptop', `POST /access/requests/${A}/allow`],
    [`access refuse ${laptop}`, `POST /access/requests/${A}/refuse`],
    ['access allow 2123', `POST /access/requests/${C}/allow`],
    [`agents acl rm ${aid} allow laptop -y`, `DELETE /agents/${aid}/acl/allow/${A}`],
    ['tunnel rm laptop', `DELETE /tunnel/${A}`],
  ] as const) {
    const { code, stderr } = await svc(line);
    assert.equal(code, 0, `${line}: ${stderr}`);
    assert.equal(daemon.asked.at(-1), request, line);
  }
  const several = await svc('access allow phone');
  assert.deepEqual(
    [several.code, several.stderr],
    [2, 'svc: "phone" stands for 2 IDs: 11234567, 21234567. Give one.\n'],
  );
  // A name that is too short for the prefix of an ID is a name.
  for (const name of ['phone', 'ada']) {
    const none = await svc(`tunnel rm ${name}`);
    assert.deepEqual([none.code, none.stderr], [5, `svc: No tunnel of "${name}". "svc tunnel status" lists them.\n`]);
  }
});
