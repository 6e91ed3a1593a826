/**
 * Notes to an agent without a process, while the daemon and the programs are killed at random moments. The long form:
 * SVCD_HOOK_NOTES=1000 SVCD_HOOK_KILLS=60 node tools/run-tests.ts test/e2e/hooks-crash.test.ts
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { addHook } from '../support/add-hook.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { Mortal } from '../support/mortal.ts';
import { ready } from '../support/network.ts';
import { Random } from '../support/random.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const NOTES = Number(process.env['SVCD_HOOK_NOTES'] ?? 60);
const KILLS = Number(process.env['SVCD_HOOK_KILLS'] ?? 6);
const SENDERS = 20;
const SEED = Number(process.env['SVCD_HOOK_SEED'] ?? 1);
/** Longest interval between two kills, milliseconds. */
const CALM_MS = 900;

/**
 * Its effect is one link per key, which exists completely or not at all. A lock that ends with its process shows two
 * programs of one sender.
 */
const PROGRAM = `
cat >"$1/items/$$"
exec 9>"$1/locks/$SVC_FROM"
flock -n 9 || echo "$SVC_IDEMPOTENCY_KEY" >>"$1/overlaps"
[ -e "$1/completed/$SVC_IDEMPOTENCY_KEY" ] && echo "$SVC_IDEMPOTENCY_KEY" >>"$1/again"
echo $$ >"$1/pids/$SVC_IDEMPOTENCY_KEY"
sleep 0.$(( $$ % 3 ))
ln "$1/items/$$" "$1/effects/$SVC_IDEMPOTENCY_KEY" 2>/dev/null
sleep 0.0$(( $$ % 5 ))
: >"$1/completed/$SVC_IDEMPOTENCY_KEY"
`;

function lines(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
}

/** Kills a running program: itself, or its whole group. False if none was found. */
function killProgram(folder: string, random: Random): boolean {
  const keys = readdirSync(join(folder, 'pids')).filter((key) => !existsSync(join(folder, 'completed', key)));
  if (keys.length === 0) return false;
  const key = random.pick(keys);
  try {
    const pid = Number(readFileSync(join(folder, 'pids', key), 'utf8'));
    // The ID may belong to another process by now.
    if (pid === 0 || !readFileSync(`/proc/${pid}/environ`, 'utf8').includes(key)) return false;
    const group = Number(readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ')[2]);
    process.kill(random.chance(0.5) ? pid : -group, 'SIGKILL');
    return true;
  } catch {
    return false;
  }
}

test('each note is handled, and each key completes once, while daemon and programs are killed', async (t) => {
  const folder = temporaryDirectory(t);
  for (const name of ['items', 'locks', 'pids', 'effects', 'completed']) mkdirSync(join(folder, name));
  writeFileSync(join(folder, 'program.sh'), PROGRAM);
  const random = new Random(SEED);
  await using senders = await TestDaemon.start();
  const receiver = await Mortal.start(senders.dhtAddress);
  t.after(() => receiver.stop());
  await ready(senders);
  const bob = await receiver.publishedAgent();
  const from = await Promise.all(Array.from({ length: SENDERS }, () => senders.newAgent()));
  // Known senders have no budget that 1,000 notes would exceed.
  const aliases = Object.fromEntries(from.map((aid, i) => [aid, `sender-${i}`]));
  await receiver.daemon.call('PUT', '/node/address-book', { aliases, favorites: [] });
  const command = ['/bin/sh', join(folder, 'program.sh'), folder];
  await addHook(receiver.daemon, { aid: bob, kind: 'note', command, folder, parallel: 8 });

  const texts = Array.from({ length: NOTES }, (_, i) => `note ${i}`);
  const sending = Promise.all(
    from.map(async (aid, i) => {
      for (const text of texts.filter((_, n) => n % SENDERS === i)) {
        const body = { recipient: bob, msg_type: 3, body_base64: Buffer.from(text).toString('base64') };
        await eventually('a note is accepted', async () => {
          const { status } = await senders.request('POST', `/agents/${aid}/mailbox/send`, body);
          return status < 300;
        });
      }
    }),
  );
  let killed = 0;
  for (let kills = 0; kills < KILLS; ) {
    await delay(random.below(CALM_MS));
    if (random.chance(0.5)) {
      await receiver.die();
      kills++;
    } else if (killProgram(folder, random)) {
      killed++;
      kills++;
    }
  }
  await sending;
  await eventually('every note is handled', () => readdirSync(join(folder, 'effects')).length >= NOTES);
  const state = await eventually('all deliveries ended', async () => {
    const { hooks } = await receiver.daemon.call<{ hooks: Record<string, number>[] }>('GET', '/hooks');
    return hooks[0]?.['waiting'] === 0 && hooks[0]['running'] === 0 && hooks[0];
  });
  assert.equal(state['dead'], 0);
  assert.equal(state['skipped'], 0);
  const effects = readdirSync(join(folder, 'effects'));
  const handled = effects.map((key) => {
    const item = JSON.parse(readFileSync(join(folder, 'effects', key), 'utf8')) as { note: { text: string } };
    return item.note.text;
  });
  assert.deepEqual(handled.toSorted(), texts.toSorted());
  assert.deepEqual(lines(join(folder, 'overlaps')), [], 'two programs of one conversation');
  const again = lines(join(folder, 'again')).length;
  assert.ok(again <= killed, `${again} completed items were started again, but only ${killed} programs were killed`);
  // Nothing is left over: no files of runs, and no notes.
  await eventually('the folders are gone', () => readdirSync(join(receiver.daemon.dataDir, 'hooks')).length === 0);
  const { messages } = await receiver.daemon.call<{ messages: unknown[] }>('GET', `/agents/${bob}/mailbox`);
  assert.deepEqual(messages, []);
});
