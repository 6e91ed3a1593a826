/** A public name in namespaces: curl on a third machine reaches an agent behind a NAT, and the entry reads nothing. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { selfSigned } from '../../../src/foundation/certificate.ts';
import type { entryOperations } from '../../../src/operations/entry.ts';
import type { joiningOperations } from '../../../src/operations/joining.ts';
import type { OutputOf } from '../../../src/operations/operation.ts';
import { eventually } from '../../support/eventually.ts';
import { LabDaemon } from '../../support/lab/daemons.ts';
import { Internet } from '../../support/lab/internet.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

type EntryState = OutputOf<typeof entryOperations.entryShow>;

const VPS = '203.0.113.10';
const DOMAIN = 'vps.test';
const NAME = `demo.${DOMAIN}`;
const WINDOW_BYTES = 4 * 1024 * 1024;

/** True if the memory of a process has a text. */
function hasInMemory(pid: number, text: string): boolean {
  const memory = openSync(`/proc/${pid}/mem`, 'r');
  const wanted = Buffer.from(text);
  const window = Buffer.alloc(WINDOW_BYTES + wanted.length);
  try {
    for (const line of readFileSync(`/proc/${pid}/maps`, 'utf8').split('\n')) {
      const [, from = '', to = ''] = /^([0-9a-f]+)-([0-9a-f]+) r/.exec(line) ?? [];
      if (from === '' || line.includes('[v')) continue;
      const end = Number.parseInt(to, 16);
      for (let at = Number.parseInt(from, 16); at < end; at += WINDOW_BYTES) {
        try {
          const length = readSync(memory, window, 0, Math.min(window.length, end - at), at);
          if (window.subarray(0, length).includes(wanted)) return true;
        } catch {
          // Reserved memory has no content.
        }
      }
    }
    return false;
  } finally {
    closeSync(memory);
  }
}

test('curl on a third machine reaches an agent behind a NAT through an entry that reads nothing', async (t) => {
  const internet = await Internet.start(t);
  if (internet === null) return;
  const machine = await internet.publicMachine('vps', [10]);
  const home = await internet.behind('laptop', ['cone']);
  const stranger = await internet.publicMachine('stranger', [30]);
  const directory = temporaryDirectory(t);
  const files = { cert: join(directory, 'cert.pem'), key: join(directory, 'key.pem') };
  const { cert, key } = selfSigned(NAME, NAME);
  writeFileSync(files.cert, cert);
  writeFileSync(files.key, key);

  await using vps = await LabDaemon.start(machine, [], `public_names = ["${DOMAIN}"]\n`);
  const certificate = `public_cert = "${files.cert}"\npublic_key = "${files.key}"\n`;
  await using laptop = await LabDaemon.start(home, [], certificate);
  const curl = (path: string, ...more: readonly string[]): Promise<string> => {
    const args = ['-sS', '--max-time', '30', '--cacert', files.cert, '--resolve', `${NAME}:443:${VPS}`, ...more];
    return stranger.run('curl', [...args, `https://${NAME}${path}`]);
  };

  // Nothing is exposed by default, and a stranger gets no name.
  const aid = await laptop.serveWeb();
  const { node_aid: entry } = await vps.call<{ node_aid: string }>('GET', '/status');
  const expose = { name: 'demo', at: entry, mode: 'public' };
  await assert.rejects(curl('/'));
  type Invitation = OutputOf<typeof joiningOperations.invite>;
  const { invitation: plain } = await vps.call<Invitation>('GET', '/node/invitation');
  await laptop.call('POST', '/node/join', { to: plain });
  const denied = await laptop.ask('POST', `/exposures/${aid}`, expose);
  assert.deepEqual([denied.status, Reflect.get(Object(denied.body), 'error')], [403, 'entry_denied']);

  // An invitation permits one agent. Its entry is the default.
  const { invitation } = await vps.call<Invitation>('POST', '/node/entry/invitations');
  await laptop.call('POST', '/node/join', { to: invitation });
  const { url } = await laptop.call<{ url: string }>('POST', `/exposures/${aid}`, { name: 'demo', mode: 'public' });
  assert.equal(url, `https://${NAME}`);
  const canary = randomBytes(24).toString('hex');
  const answer = await eventually('an answer', () =>
    curl(`/${canary}`, '-H', `X-Canary: ${canary}`, '--data', canary).catch(() => undefined),
  );
  assert.ok(answer.includes(canary), answer);
  assert.ok(hasInMemory(laptop.pid, canary), 'the scan finds texts');
  assert.ok(hasInMemory(vps.pid, NAME), 'the scan finds texts at the entry');
  assert.ok(!hasInMemory(vps.pid, canary), 'the entry has the canary');

  const state = await vps.call<EntryState>('GET', '/node/entry');
  assert.deepEqual([state.domains, state.problem, state.names[0]?.aid], [[DOMAIN], null, aid]);
  assert.ok(state.ports.includes(443) && state.accepted > 0);

  // Free names lead to no agent.
  await assert.rejects(stranger.run('curl', ['-sSk', '--resolve', `x.${DOMAIN}:443:${VPS}`, `https://x.${DOMAIN}/`]));
  await laptop.call('DELETE', `/exposures/${await idOf(laptop)}`);
  await assert.rejects(curl('/'));
  assert.deepEqual((await vps.call<EntryState>('GET', '/node/entry')).names, []);
});

async function idOf(daemon: LabDaemon): Promise<string> {
  const { exposures } = await daemon.call<{ exposures: readonly { id: string }[] }>('GET', '/exposures');
  return exposures[0]?.id ?? '';
}
