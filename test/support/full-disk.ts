/**
 * Runs in a mount namespace with a small disk. A daemon on it keeps running while the disk is full, keeps acknowledged data but no rejected requests, and accepts everything again after space is free. Fails with the first
 * violation.
 */
import assert from 'node:assert/strict';
import { closeSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { svc } from './cli.ts';
import { type ApiAnswer, TestDaemon } from './daemon.ts';
import { EchoService } from './echo-service.ts';
import { eventually } from './eventually.ts';
import { base64, chatTexts, fullAgent, groupTexts, noteTexts, tool } from './moving.ts';
import { ready } from './network.ts';

const [disk = ''] = process.argv.slice(2);
const dataDir = join(disk, 'data');
const elsewhere = join(disk, '..', 'elsewhere');
const filler = join(disk, 'filler');

/** Fills the disk to the last byte. */
function fill(): void {
  const file = openSync(filler, 'a');
  try {
    for (const size of [65_536, 1]) while (writes(file, size));
  } finally {
    closeSync(file);
  }
}

function writes(file: number, size: number): boolean {
  try {
    return writeSync(file, Buffer.alloc(size)) === size;
  } catch {
    return false;
  }
}

function refused(what: string, { status, body }: Pick<ApiAnswer, 'status' | 'body'>, expected = 500): void {
  const { error, message } = body as { error?: string; message?: string };
  assert.deepEqual([status, error], [expected, 'not_writable'], `${what}: ${JSON.stringify(body)}`);
  assert.match(message ?? '', /free/, what);
}

mkdirSync(elsewhere, { recursive: true, mode: 0o700 });
fill();
await assert.rejects(
  TestDaemon.start({ dataDir }),
  /ended with 1:\nsvcd: The lock .* check .* the free space on the disk/,
);
rmSync(filler);
mkdirSync(dataDir, { recursive: true, mode: 0o700 });

await using away = await TestDaemon.start();
const settings = { dataDir, bootstrap: [away.dhtAddress] };
let home = await TestDaemon.start({ ...settings, config: `files_root = "${join(disk, 'files')}"\n` });
await ready(home);
await using own = await EchoService.start();
await using other = await EchoService.start();
const { aid, friend, group } = await fullAgent(home, away, { own: own.address, friend: other.address });
const identity = await away.call<Record<string, string>>('POST', '/identity/generate');
const registration = {
  operational_private_key_hex: identity['operational_private_key_hex'],
  delegation_proof_hex: identity['delegation_proof_hex'],
};
const at = `/agents/${aid}`;
/** User actions, and the expected status of a rejection if it differs. */
const writing: readonly (readonly [string, () => Promise<Pick<ApiAnswer, 'status' | 'body'>>, number?])[] = [
  ['an agent', () => home.request('POST', '/agents', registration)],
  ['a label', () => home.request('PUT', '/node/address-book', { aliases: { [friend]: 'friend' }, favorites: [] })],
  ['a note', () => home.request('POST', `${at}/mailbox/send`, { recipient: friend, msg_type: 3, body_base64: '' })],
  ['a chat text', () => home.request('POST', `${at}/chat/send`, { peer: friend, text: 'three' })],
  [
    'a room entry',
    () =>
      home.request('POST', '/mcp/call', {
        tool: 'group_append',
        args: { aid, group_id: group, body: base64('third') },
      }),
    422,
  ],
  ['a list entry', () => home.request('POST', `${at}/acl/deny`, { aid: friend })],
  ['a profile', () => home.request('POST', `${at}/profile`, { name: 'another' })],
  ['a record', () => home.request('POST', `${at}/records`, { rec_type: 9, payload_base64: 'AAAA', ttl: 3600 })],
  [
    'an object',
    async () => {
      const headers = { 'content-type': 'application/octet-stream' };
      const body = Buffer.alloc(200_000);
      const answer = await fetch(`${home.api}${at}/cas?name=a`, { method: 'POST', body, headers });
      return { status: answer.status, body: await answer.json() };
    },
  ],
];
/** A list entry for the friend would end the calls and chats that follow. */
const lasting = writing.filter(([what]) => what !== 'a list entry');
const files = (): string[] => readdirSync(dataDir, { recursive: true }).map(String).sort();
// The first change creates the backup of the file. Whether the last blocks allow that is chance.
for (const min_observed_peers of [4, 5]) await home.call('PATCH', '/config', { min_observed_peers });
const before = { files: files(), agent: await home.call<{ acl: unknown; profile: unknown }>('GET', at) };

fill();
for (const [what, write, status] of writing) refused(what, await write(), status);
refused(
  'the configuration',
  await eventually('the last blocks are used up', async () => {
    // A new file replaces an earlier one, whose blocks become free for the next one.
    const answer = await home.request('PATCH', '/config', { min_observed_peers: (Date.now() % 5) + 4 });
    fill();
    return answer.status !== 200 && answer;
  }),
);
await away.call('POST', `/agents/${friend}/chat/send`, { peer: aid, text: 'from outside' });
await away.call('POST', `/agents/${friend}/mailbox/send`, { recipient: aid, msg_type: 3, body_base64: base64('late') });
for (const args of [
  ['backup', join(elsewhere, 'node.svcd'), '--no-password', '--data-dir', dataDir],
  ['backup', join(disk, 'node.svcd'), '--no-password', '--data-dir', dataDir],
  ['agents', 'export', aid, '-o', join(disk, 'an.agent')],
  ['register', '--save-master', join(disk, 'master.key')],
]) {
  const { code, stderr } = await svc(home, args);
  assert.equal(code, 1, stderr);
  assert.match(stderr, /free (some )?space/, args.join(' '));
}
// Operations without disk access still work.
for (const path of ['/health', '/status', at, `${at}/bundle`]) await home.call('GET', path);
const served = await away.request('POST', `/fetch/${aid}`, {
  path: '/',
  local_aid: friend,
  access_token: 'open sesame 7',
});
assert.equal(served.status, 200);
assert.deepEqual(files(), before.files);
assert.deepEqual(readdirSync(disk).sort(), ['data', 'files', 'filler']);
assert.deepEqual(readdirSync(elsewhere), []);
const after = await home.call<{ acl: unknown; profile: unknown }>('GET', at);
assert.deepEqual([after.acl, after.profile], [before.agent.acl, before.agent.profile]);
assert.equal(await home.kill('SIGTERM'), 1);
assert.match(home.output, /stopped with errors .*not_writable/);
await assert.rejects(TestDaemon.start(settings), /ended with 1:[^]*svcd: .*free/);

rmSync(filler);
home = await TestDaemon.start(settings);
assert.deepEqual(await chatTexts(home, aid, friend).then((texts) => texts.slice(0, 2)), ['one', 'two']);
assert.deepEqual(await groupTexts(home, aid, group), ['first', 'second']);
await eventually('messages of a friend meanwhile', async () =>
  (await chatTexts(home, aid, friend)).includes('from outside'),
);
await eventually('the note of meanwhile', async () => (await noteTexts(home, aid)).includes('late'));
assert.equal((await home.call<{ agents: unknown[] }>('GET', '/agents')).agents.length, 1);
await ready(home);
for (const [what, write] of lasting) assert.ok((await write()).status < 300, `${what}, once there is room`);
await eventually('the friend hears it', async () => (await chatTexts(away, friend, aid)).includes('three'));
await tool(home, 'group_read', { aid, group_id: group });
await home.stop();

// A backup that does not fit on its target leaves the existing node unchanged.
const copy = join(elsewhere, 'node.svcd');
const backup = await svc(null, ['backup', copy, '--no-password', '--data-dir', dataDir]);
assert.equal(backup.code, 0, backup.stderr);
writeFileSync(join(dataDir, 'mark'), '');
const whole = files();
fill();
const restore = await svc(null, ['restore', copy, '--data-dir', dataDir, '--force']);
assert.equal(restore.code, 1, restore.stderr);
assert.match(restore.stderr, /cannot be (used|written).*free (some )?space/);
assert.deepEqual(files(), whole);
rmSync(filler);
home = await TestDaemon.start(settings);
assert.equal((await home.call<{ agents: unknown[] }>('GET', '/agents')).agents.length, 2);
await home.stop();
