/** Files that agents offer each other, between real daemons: offline, denied, withdrawn, killed during the transfer. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { RANGE_BYTES } from '../../src/foundation/domain/objects.ts';
import { runSvc } from '../support/cli-run.ts';
import { type DaemonOptions, TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { ready } from '../support/network.ts';
import { sha256, someBytes } from '../support/object-world.ts';
import { quietPort } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** Larger than a transfer on a loaded machine between two checks. */
const LARGE_BYTES = 160_000_000;

interface Received {
  readonly received: readonly { readonly path: string; readonly from: string; readonly size: number }[];
}

interface Offers {
  readonly offers: readonly { readonly id: string; readonly name: string; readonly state: string }[];
}

/** Options of a daemon that restarts at the same addresses after a kill. */
async function fixedAddresses(t: TestContext, root: TestDaemon): Promise<DaemonOptions> {
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

test('an offer waits for an offline recipient, gives access to its file only, and is settled when received', async (t) => {
  await using root = await TestDaemon.start();
  const options = await fixedAddresses(t, root);
  await using far = await TestDaemon.start({ bootstrap: [root.dhtAddress] });
  const first = await TestDaemon.start(options);
  await Promise.all([ready(root), ready(far), ready(first)]);
  const [alice, bob] = [await publishedAgent(far), await publishedAgent(first)];
  const carol = await publishedAgent(first);
  // Both agents refuse everyone who is not on their access list.
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
  await eventually('the offer has arrived', async () =>
    (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.some((one) => one.id === id),
  );
  const polled = await near.call<{ events: { type: string }[] }>('POST', '/mcp/call', {
    tool: 'svc_events_poll',
    args: { aid: bob },
  });
  assert.ok(polled.events.some(({ type }) => type === 'file.offered'));
  // An offer is not a note.
  assert.deepEqual(await near.call('GET', `/agents/${bob}/mailbox`), { messages: [] });

  // The offer to Bob gives Carol no access, and gives Bob no access to other objects.
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
  await eventually('the sender is notified', async () => (await state(far, alice, id)) === 'taken');
  // The copy made for the offer is removed and can no longer be read.
  await eventually('the copy is removed', async () => {
    const { objects } = await far.call<{ objects: { object_id: string }[] }>('GET', `/agents/${alice}/cas`);
    return objects.every(({ object_id }) => object_id !== sha256(bytes));
  });
  assert.notEqual((await get(bob, sha256(bytes))).status, 200);
});

test('an agent denied by name is refused on both sides, and a withdrawn offer gives no access', async (t) => {
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
    eventually('the offer has arrived', async () =>
      (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.some((one) => one.id === id),
    );

  const withdrawn = await offer();
  await here(withdrawn);
  await svc(far, 'files', 'withdraw', withdrawn.slice(0, 8));
  await eventually('the recipient is notified', async () => (await state(near, bob, withdrawn)) === 'withdrawn');
  // The partial file of the withdrawn offer is removed; partial files of other offers remain.
  const into = temporaryDirectory(t);
  for (const id of [withdrawn, '00ff00ff']) writeFileSync(join(into, `.svc-${id}.part`), 'partial');
  await svc(near, 'receive', '--aid', bob, '--into', into, '-y');
  assert.deepEqual(readdirSync(into), ['.svc-00ff00ff.part']);
  assert.equal(await svc(near, 'receive', '-y', '--into', inbox), 'No offers.\n');

  const declined = await offer();
  await here(declined);
  await svc(near, 'files', 'decline', declined);
  await eventually('the sender is notified', async () => (await state(far, alice, declined)) === 'declined');

  // An offer to an agent that is denied afterwards gives no access.
  const open = await offer();
  await here(open);
  await far.call('POST', `/agents/${alice}/acl/deny`, { aid: bob });
  assert.deepEqual(await refused(near, 'receive', '-y', '--into', inbox), { code: 4, error: 'access_denied' });
  assert.deepEqual(await refused(far, 'send', file, bob), { code: 4, error: 'access_denied' });
  assert.deepEqual(
    readdirSync(inbox).filter((name) => !name.endsWith('.part')),
    [],
  );

  // Bob has denied Alice: Bob is not notified, and Alice does not learn why.
  const { deny } = await far.call<{ deny: { id: string; aid: string }[] }>('GET', `/agents/${alice}/acl`);
  await far.call('DELETE', `/agents/${alice}/acl/deny/${deny[0]?.id}`, {});
  await near.call('POST', `/agents/${bob}/file-offers/${open}/decline`, {});
  await near.call('POST', `/agents/${bob}/acl/deny`, { aid: alice });
  const unanswered = await offer();
  assert.equal(await state(far, alice, unanswered), 'open');
  assert.deepEqual(await near.call('GET', `/agents/${bob}/file-offers`), { offers: [] });
});

test('a large file resumes after a SIGKILL of the sending daemon and of the receiving daemon', async (t) => {
  await using root = await TestDaemon.start();
  const [theirs, ours] = [await fixedAddresses(t, root), await fixedAddresses(t, root)];
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
      'the offer has arrived',
      async () => (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.length === 1,
    );
    const receiving = svc(near, 'receive', '-y', '--into', inbox, '--json');
    const part = (): string => join(inbox, readdirSync(inbox).find((name) => name.endsWith('.part')) ?? 'none');
    const grown = (to: number) =>
      eventually(`${to} bytes have arrived`, () => (statSync(part(), { throwIfNoEntry: false })?.size ?? 0) > to);
    await grown(0);
    const { ino } = statSync(part());
    await far.kill();
    const before = statSync(part()).size;
    assert.ok(before < LARGE_BYTES, 'the transfer was complete before the kill');
    far = await TestDaemon.start(theirs);
    await grown(before);
    await near.kill();
    assert.ok(statSync(part()).size < LARGE_BYTES, 'the transfer was complete before the second kill');
    near = await TestDaemon.start(ours);
    const { received } = JSON.parse(await receiving) as Received;
    assert.deepEqual(
      received.map(({ path, from }) => ({ path, from })),
      [{ path: join(inbox, 'film.mp4'), from: alice }],
    );
    assert.equal(statSync(join(inbox, 'film.mp4')).ino, ino);
    assert.ok(readFileSync(join(inbox, 'film.mp4')).equals(bytes));
    assert.match(await sending, /has received film\.mp4/);
  } finally {
    await Promise.all([far.stop(), near.stop()]);
  }
});

test('a file is offered and received while its client still sends it to svcd', async (t) => {
  await using far = await TestDaemon.start();
  await using near = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
  await Promise.all([ready(far), ready(near)]);
  const [alice, bob] = [await publishedAgent(far), await publishedAgent(near)];
  const inbox = temporaryDirectory(t);
  const bytes = someBytes(10_000_000);
  const body = { recipient: bob, size: bytes.length, name: 'film.mp4', temporary: true };
  const { id } = await far.call<{ id: string }>('POST', `/agents/${alice}/file-offers`, body);
  await eventually('the offer has arrived', async () =>
    (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.some((one) => one.id === id),
  );
  const receiving = svc(near, 'receive', '-y', '--into', inbox, '--json');
  const upload = request(`${far.api}/agents/${alice}/file-offers/${id}/content`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream', 'content-length': bytes.length },
  });
  upload.write(bytes.subarray(0, 6_000_000));
  const part = join(inbox, `.svc-${id}.part`);
  await eventually(
    'the first range has arrived',
    () => (statSync(part, { throwIfNoEntry: false })?.size ?? 0) >= RANGE_BYTES,
  );
  assert.deepEqual(readdirSync(inbox), [`.svc-${id}.part`]);
  const answered = once(upload, 'response');
  upload.end(bytes.subarray(6_000_000));
  const [response] = (await answered) as [IncomingMessage];
  response.resume();
  assert.equal(response.statusCode, 200);
  const { received } = JSON.parse(await receiving) as { received: { object_id: string; path: string }[] };
  assert.deepEqual(
    received.map(({ object_id }) => object_id),
    [sha256(bytes)],
  );
  assert.ok(readFileSync(join(inbox, 'film.mp4')).equals(bytes));
  await eventually('the sender is notified', async () => (await state(far, alice, id)) === 'taken');
});

test('a file below files_root is offered before it is hashed, and a changed one withdraws its offer', async (t) => {
  await using far = await TestDaemon.start();
  await using near = await TestDaemon.start({ bootstrap: [far.dhtAddress] });
  await Promise.all([ready(far), ready(near)]);
  const [alice, bob] = [await publishedAgent(far), await publishedAgent(near)];
  const { files_root: root } = await far.call<{ files_root: string }>('GET', '/status');
  mkdirSync(root, { recursive: true });
  const bytes = someBytes(9_000_000);
  writeFileSync(join(root, 'film.mp4'), bytes);
  const sending = svc(far, 'send', join(root, 'film.mp4'), bob);
  await eventually(
    'the offer has arrived',
    async () => (await near.call<Offers>('GET', `/agents/${bob}/file-offers`)).offers.length === 1,
  );
  const inbox = temporaryDirectory(t);
  await svc(near, 'receive', '-y', '--into', inbox);
  assert.ok(readFileSync(join(inbox, 'film.mp4')).equals(bytes));
  assert.match(await sending, /has received film\.mp4/);

  // A file that is longer than its size when it was offered.
  const body = { recipient: bob, size: 10, name: 'grown.txt', temporary: true };
  const { id } = await far.call<{ id: string }>('POST', `/agents/${alice}/file-offers`, body);
  const upload = await fetch(`${far.api}/agents/${alice}/file-offers/${id}/content`, {
    method: 'POST',
    headers: { 'content-type': 'application/octet-stream' },
    body: Buffer.alloc(11),
  });
  assert.equal(((await upload.json()) as { error: string }).error, 'wrong_state');
  const offer = await far.call<{ state: string; problem: string }>('GET', `/agents/${alice}/file-offers/${id}`);
  assert.deepEqual([offer.state, /changed while it was read/.test(offer.problem)], ['withdrawn', true]);
  await eventually('the recipient is notified', async () => (await state(near, bob, id)) === 'withdrawn');
});
