/** Files that agents offer one another, between real daemons: away, denied, withdrawn, killed in the middle. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { runSvc } from '../support/cli-run.ts';
import { type DaemonOptions, TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { sha256, someBytes } from '../support/object-world.ts';
import { quietPort } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Larger than what a loaded machine moves before somebody looks. */
const LARGE_BYTES = 160_000_000;

interface Received {
  readonly received: readonly { readonly path: string; readonly from: string; readonly size: number }[];
}

interface Offers {
  readonly offers: readonly { readonly id: string; readonly name: string; readonly state: string }[];
}

/** A daemon that comes back at its addresses after a kill. */
async function lasting(t: TestContext, root: TestDaemon): Promise<DaemonOptions> {
  const [listen, quic, api] = [await quietPort(), await quietPort(), await quietPort()];
  return {
    dataDir: temporaryDirectory(t),
    bootstrap: [root.dhtAddress],
    args: ['--listen', `127.0.0.1:${listen}`, '--api-addr', `127.0.0.1:${api}`],
    env: { SVCD_QUIC_LISTEN_ADDR: `127.0.0.1:${quic}` },
  };
}

async function publishedAgent(daemon: TestDaemon): Promise<string> {
  const aid = await daemon.newAgent();
  await daemon.call('POST', `/agents/${aid}/publish`);
  return aid;
}

async function svc(daemon: TestDaemon, ...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runSvc(args, { env: { SVC_API: daemon.api } });
  assert.equal(code, 0, `svc ${args.join(' ')}: ${stderr}`);
  return stdout;
}

async function refused(
  daemon: TestDaemon,
  ...args: readonly string[]
): Promise<{ code: number | null; error: string }> {
  const { code, stderr } = await runSvc([...args, '--json'], { env: { SVC_API: daemon.api } });
  return { code, error: (JSON.parse(stderr) as { error: string }).error };
}

async function state(daemon: TestDaemon, aid: string, id: string): Promise<string> {
  return (await daemon.call<{ state: string }>('GET', `/agents/${aid}/file-offers/${id}`)).state;
}

test('a file waits for who is away, opens nothing but itself, and is over when it is taken', async (t) => {
  await using root = await TestDaemon.start();
  const options = await lasting(t, root);
  await using far = await TestDaemon.start({ bootstrap: [root.dhtAddress] });
  const first = await TestDaemon.start(options);
  await Promise.all([ready(root), ready(far), ready(first)]);
  const [alice, bob] = [await publishedAgent(far), await publishedAgent(first)];
  const carol = await publishedAgent(first);
  // Neither lets in anybody whom it does not name.
  await far.call('PATCH', `/agents/${alice}/acl`, { default: 'deny' });
  await first.call('PATCH', `/agents/${bob}/acl`, { default: 'deny' });
  const [outbox, inbox] = [temporaryDirectory(t), temporaryDirectory(t)];
  const bytes = someBytes(1_500_000);
  writeFileSync(join(outbox, 'plan.pdf'), bytes);
  writeFileSync(join(outbox, 'secret.txt'), 'for nobody');

  await first.kill();
  const sent = await svc(far, 'send', join(outbox, 'plan.pdf'), bob, '-m', 'as promised', '--no-wait', '--quiet');
  const id = sent.trim();
  assert.equal(await state(far, alice, id), 'open');
  await using near = await TestDaemon.start(options);
  await eventually('the offer arrived', async () =>
    (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.some((one) => one.id === id),
  );
  const polled = await near.call<{ events: { type: string }[] }>('POST', '/mcp/call', {
    tool: 'svc_events_poll',
    args: { aid: bob },
  });
  assert.ok(polled.events.some(({ type }) => type === 'file.offered'));
  // It is no note.
  assert.deepEqual(await near.call('GET', `/agents/${bob}/mailbox`), { messages: [] });

  // What is offered to Bob is not offered to Carol, and nothing else is offered to Bob.
  const secret = await far.call<{ object_id: string }>('POST', '/mcp/call', {
    tool: 'group_object_put',
    args: { aid: alice, body_base64: Buffer.from('for nobody').toString('base64') },
  });
  const get = (aid: string, object_id: string) =>
    near.request('POST', '/mcp/call', { tool: 'group_object_get', args: { aid, object_id, hint_aid: alice } });
  const errorOf = async (answer: ReturnType<typeof get>) => ((await answer).body as { error: string }).error;
  assert.equal(await errorOf(get(bob, secret.object_id)), 'access_denied');
  assert.equal(await errorOf(get(carol, sha256(bytes))), 'access_denied');
  const call = await near.request('GET', `/aid/${alice}/?local_aid=${bob}`);
  assert.equal(call.status, 403);
  const tunnel = await near.request('POST', `/connect/${alice}`, { local_aid: bob });
  assert.ok(tunnel.status >= 400, JSON.stringify(tunnel.body));

  const { received } = JSON.parse(
    await svc(near, 'receive', alice, '-y', '--into', inbox, '--aid', bob, '--json'),
  ) as Received;
  assert.deepEqual(
    received.map(({ path, from, size }) => ({ path, from, size })),
    [{ path: join(inbox, 'plan.pdf'), from: alice, size: bytes.length }],
  );
  assert.ok(readFileSync(join(inbox, 'plan.pdf')).equals(bytes));
  assert.deepEqual(readdirSync(inbox), ['plan.pdf']);
  await eventually('the sender knows', async () => (await state(far, alice, id)) === 'taken');
  // The copy that was there for the offer alone is gone, and nobody reads it any more.
  await eventually('the copy is gone', async () => {
    const { objects } = await far.call<{ objects: { object_id: string }[] }>('GET', `/agents/${alice}/cas`);
    return objects.every(({ object_id }) => object_id !== sha256(bytes));
  });
  assert.notEqual((await get(bob, sha256(bytes))).status, 200);
});

test('who is denied by name stays out, on either side, and a withdrawn offer opens nothing', async (t) => {
  await using far = await TestDaemon.start();
  await using near = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
  await Promise.all([ready(far), ready(near)]);
  const [alice, bob] = [await publishedAgent(far), await publishedAgent(near)];
  await far.call('PATCH', `/agents/${alice}/acl`, { default: 'deny' });
  const [outbox, inbox] = [temporaryDirectory(t), temporaryDirectory(t)];
  const file = join(outbox, 'one.txt');
  writeFileSync(file, 'one');
  const offer = async (): Promise<string> => (await svc(far, 'send', file, bob, '--no-wait', '--quiet')).trim();
  const here = (id: string) =>
    eventually('the offer arrived', async () =>
      (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.some((one) => one.id === id),
    );

  const withdrawn = await offer();
  await here(withdrawn);
  await svc(far, 'files', 'withdraw', withdrawn.slice(0, 8));
  await eventually('the recipient knows', async () => (await state(near, bob, withdrawn)) === 'withdrawn');
  // What had come of it goes, and what is not known to be over stays.
  const into = temporaryDirectory(t);
  for (const id of [withdrawn, '00ff00ff']) writeFileSync(join(into, `.svc-${id}.part`), 'half of it');
  await svc(near, 'receive', '--aid', bob, '--into', into, '-y');
  assert.deepEqual(readdirSync(into), ['.svc-00ff00ff.part']);
  assert.equal(await svc(near, 'receive', '-y', '--into', inbox), 'No offers.\n');

  const declined = await offer();
  await here(declined);
  await svc(near, 'files', 'decline', declined);
  await eventually('the sender knows', async () => (await state(far, alice, declined)) === 'declined');

  // Shut out after it was made: the offer opens nothing any more.
  const open = await offer();
  await here(open);
  await far.call('POST', `/agents/${alice}/acl/deny`, { aid: bob });
  assert.deepEqual(await refused(near, 'receive', '-y', '--into', inbox), { code: 4, error: 'access_denied' });
  assert.deepEqual(await refused(far, 'send', file, bob), { code: 4, error: 'access_denied' });
  assert.deepEqual(
    readdirSync(inbox).filter((name) => !name.endsWith('.part')),
    [],
  );

  // Bob has shut Alice out: he hears of nothing, and she does not learn why.
  const { deny } = await far.call<{ deny: { id: string; aid: string }[] }>('GET', `/agents/${alice}/acl`);
  await far.call('DELETE', `/agents/${alice}/acl/deny/${deny[0]?.id}`, {});
  await near.call('POST', `/agents/${bob}/file-offers/${open}/decline`, {});
  await near.call('POST', `/agents/${bob}/acl/deny`, { aid: alice });
  const unheard = await offer();
  assert.equal(await state(far, alice, unheard), 'open');
  assert.deepEqual(await near.call('GET', `/agents/${bob}/file-offers`), { offers: [] });
});

test('a large file goes on after a SIGKILL of the daemon that sends it, and of the one that gets it', async (t) => {
  await using root = await TestDaemon.start();
  const [theirs, ours] = [await lasting(t, root), await lasting(t, root)];
  let far = await TestDaemon.start(theirs);
  let near = await TestDaemon.start(ours);
  try {
    await Promise.all([ready(root), ready(far), ready(near)]);
    const [alice, bob] = [await publishedAgent(far), await publishedAgent(near)];
    const [outbox, inbox] = [temporaryDirectory(t), temporaryDirectory(t)];
    const bytes = someBytes(LARGE_BYTES);
    writeFileSync(join(outbox, 'film.mp4'), bytes);
    const sending = svc(far, 'send', join(outbox, 'film.mp4'), bob);
    await eventually(
      'the offer arrived',
      async () => (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.length === 1,
    );
    const receiving = svc(near, 'receive', '-y', '--into', inbox, '--json');
    const part = (): string => join(inbox, readdirSync(inbox).find((name) => name.endsWith('.part')) ?? 'none');
    const grown = (to: number) =>
      eventually(`${to} bytes are here`, () => (statSync(part(), { throwIfNoEntry: false })?.size ?? 0) > to);
    await grown(0);
    const { ino } = statSync(part());
    await far.kill();
    const before = statSync(part()).size;
    assert.ok(before < LARGE_BYTES, 'it was through before the kill');
    far = await TestDaemon.start(theirs);
    await grown(before);
    await near.kill();
    assert.ok(statSync(part()).size < LARGE_BYTES, 'it was through before the second kill');
    near = await TestDaemon.start(ours);
    const { received } = JSON.parse(await receiving) as Received;
    assert.deepEqual(
      received.map(({ path, from }) => ({ path, from })),
      [{ path: join(inbox, 'film.mp4'), from: alice }],
    );
    assert.equal(statSync(join(inbox, 'film.mp4')).ino, ino);
    assert.ok(readFileSync(join(inbox, 'film.mp4')).equals(bytes));
    assert.match(await sending, /has taken film\.mp4/);
  } finally {
    await Promise.all([far.stop(), near.stop()]);
  }
});
