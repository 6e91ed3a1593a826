/** `svc agents profile set` changes the given fields. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runSvc } from '../support/cli-run.ts';
import { TestDaemon } from '../support/daemon.ts';

const CARD_HASH = 'a'.repeat(64);

test('an option of "profile set" changes one field, and an empty value removes it', async () => {
  await using daemon = await TestDaemon.start();
  const aid = await daemon.newAgent();
  const profile = async () => (await daemon.call<{ profile?: unknown }>('GET', `/agents/${aid}`)).profile;
  const set = async (...options: readonly string[]): Promise<void> => {
    const { code, stderr } = await runSvc(['agents', 'profile', 'set', aid, ...options], {
      env: { SVC_API: daemon.api },
    });
    assert.equal(code, 0, `${options.join(' ')}: ${stderr}`);
  };

  await set('--name', 'home');
  assert.deepEqual(await profile(), { name: 'home' });
  const all = {
    name: 'home',
    brief: 'Translates',
    protocols: ['a2a'],
    skills: ['translate', 'count'],
    modalities: ['text'],
    card_hash: CARD_HASH,
    wakes_within_s: 5,
    meta: { floor: 3 },
  };
  await daemon.call('POST', `/agents/${aid}/profile`, all);
  assert.deepEqual(await profile(), all);
  let expected: Record<string, unknown> = all;
  for (const [options, change] of [
    [['--wakes', '3'], { wakes_within_s: 3 }],
    [['--brief', 'Counts'], { brief: 'Counts' }],
    [['--protocol', 'mcp', '--protocol', 'http'], { protocols: ['mcp', 'http'] }],
    [['--skill', 'count'], { skills: ['count'] }],
    [['--modality', 'audio'], { modalities: ['audio'] }],
    [['--name', 'house'], { name: 'house' }],
    [[], {}],
  ] as const) {
    await set(...options);
    expected = { ...expected, ...change };
    assert.deepEqual(await profile(), expected, options.join(' '));
  }
  await set('--name', '', '--brief', '', '--protocol', '', '--skill', '', '--modality', '', '--wakes', '0');
  assert.deepEqual(await profile(), { card_hash: CARD_HASH, meta: { floor: 3 } });
});
