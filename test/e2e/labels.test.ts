/** Labels in place of AIDs, and labels in results: REST, tools, gateway and commands of one daemon. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';
import { newIdentity } from '../support/identities.ts';

interface Failure {
  readonly error: string;
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

test('every request accepts labels, and results with AIDs contain labels', async () => {
  await using daemon = await TestDaemon.start();
  const [own, two] = [await daemon.newAgent(), await daemon.newAgent()];
  const far = newIdentity().aid;
  const book = {
    aliases: { [own]: 'home', [far]: 'Bob B.' },
    other_labels: { [far]: ['robert'] },
    favorites: [{ aid: far }],
  };
  await daemon.call('PUT', '/node/address-book', book);
  const labels = { [far]: 'Bob B.' };

  // Path and body. The result of the access list names only the remote agent.
  await daemon.call('POST', '/agents/HOME/acl/allow', { aid: 'Robert' });
  const list = await daemon.call<{ allow: { aid: string }[]; labels: unknown }>('GET', `/agents/${own}/acl`);
  assert.deepEqual([list.allow[0]?.aid, list.labels], [far, labels]);
  const agent = await daemon.call<{ aid: string; labels: unknown }>('GET', '/agents/home');
  assert.deepEqual([agent.aid, agent.labels], [own, { [own]: 'home', ...labels }]);

  // Tools, with the label under the name of the argument.
  await daemon.call('POST', '/mcp/call', {
    tool: 'svc_mailbox_send',
    args: { aid: 'home', recipient: two, body_base64: 'aGk=', msg_type: 0 },
  });
  await daemon.call('PUT', '/node/address-book', { aliases: { ...book.aliases, [two]: 'two' }, favorites: [] });
  const received = await daemon.call<{ labels: unknown; messages: unknown[] }>('POST', '/mcp/call', {
    tool: 'svc_mailbox_list',
    args: { aid: 'two' },
  });
  assert.deepEqual([received.messages.length, received.labels], [1, { [own]: 'home' }]);
  const unknown = await daemon.request('POST', '/mcp/call', { tool: 'svc_mailbox_list', args: { aid: 'nobody' } });
  const failure = unknown.body as Failure;
  assert.deepEqual([failure.error, failure.details['in'], failure.details['path']], ['bad_aid', 'args', '/aid']);
  assert.match(failure.message, /neither an AID nor a label/);

  // The gateway: its path and its header. Nothing serves "two".
  const called = await daemon.request('GET', '/aid/two/', undefined, { 'svc-local-aid': 'home' });
  assert.deepEqual([called.status, (called.body as Failure).error], [503, 'no_inbound']);
  const redirect = await fetch(`${daemon.api}/aid/two?x=1`, { redirect: 'manual' });
  assert.equal(redirect.headers.get('location'), `/aid/${two}/?x=1`);

  // Documents that clients send back contain no labels, and the other label survived the write without it.
  const read = await daemon.call<Record<string, unknown>>('GET', '/node/address-book');
  assert.deepEqual([read['labels'], read['other_labels']], [undefined, { [far]: ['robert'] }]);
  assert.equal((await daemon.call<Record<string, unknown>>('GET', `/agents/${own}/bundle`))['labels'], undefined);

  // Two local agents whose profiles have the same name.
  for (const aid of [own, two]) await daemon.request('POST', `/agents/${aid}/profile`, { name: 'Same' });
  const ambiguous = await daemon.request('GET', '/agents/same');
  const { error, details } = ambiguous.body as Failure;
  assert.deepEqual([ambiguous.status, error, details['in'], details['path']], [400, 'ambiguous_label', 'path', '/aid']);
  assert.deepEqual([...(details['aids'] as string[])].sort(), [own, two].sort());
});

test('the commands edit several labels of an agent', async () => {
  await using daemon = await TestDaemon.start();
  const far = newIdentity().aid;
  const svc = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await runSvc(args, { env: { SVC_API: daemon.api } });
    assert.equal(code, 0, stderr);
    return stdout;
  };
  const labels = async (): Promise<unknown> => JSON.parse(await svc('alias', 'list', '--json'));
  await svc('alias', 'add', 'bob', far);
  await svc('alias', 'add', 'work bob', 'bob', '--also');
  const both = { aliases: { [far]: 'bob' }, other_labels: { [far]: ['work bob'] } };
  assert.deepEqual(await labels(), both);
  // The shown label again changes nothing.
  await svc('alias', 'add', 'bob', far);
  await svc('alias', 'add', 'bob', far, '--also');
  assert.deepEqual(await labels(), both);
  assert.equal(await svc('alias', 'list', '--quiet'), 'bob\nwork bob\n');
  await svc('alias', 'add', 'robert', 'WORK BOB');
  assert.deepEqual(await labels(), { aliases: { [far]: 'robert' }, other_labels: { [far]: ['work bob'] } });
  await svc('alias', 'del', 'Robert');
  assert.deepEqual(await labels(), { aliases: { [far]: 'work bob' } });
  await svc('alias', 'del', 'work bob');
  assert.deepEqual(await labels(), { aliases: {} });
});

test('a served agent is found by each of its labels, and the label of another agent is refused first', async () => {
  await using daemon = await TestDaemon.start();
  const [own, far] = [await daemon.newAgent(), newIdentity().aid];
  const book = { aliases: { [own]: 'home', [far]: 'bob' }, other_labels: { [own]: ['lab'], [far]: ['robert'] } };
  await daemon.call('PUT', '/node/address-book', { ...book, favorites: [] });
  const serve = (name: string) =>
    runSvc(['serve', '8080', '--name', name, '--quiet'], { env: { SVC_API: daemon.api } });
  const served = await serve('LAB');
  assert.deepEqual([served.code, served.stdout], [0, `${own}\n`], served.stderr);
  const refused = await serve('robert');
  assert.equal(refused.code, 2, refused.stderr);
  assert.match(refused.stderr, /"robert" is the label of aid1/);
  const { agents } = await daemon.call<{ agents: { aid: string }[] }>('GET', '/agents');
  assert.deepEqual(
    agents.map(({ aid }) => aid),
    [own],
  );
  const { aliases, other_labels } = await daemon.call<typeof book>('GET', '/node/address-book');
  assert.deepEqual({ aliases, other_labels }, book);
});
