import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { HeldName } from '../../../src/capabilities/public-names/name-holder.ts';
import { SvcError } from '../../../src/foundation/errors.ts';
import type { Aid } from '../../../src/foundation/identity/aid.ts';
import { exposureHandlers } from '../../../src/operations/handlers/exposures.ts';
import { storeWithAgents } from '../../foundation/store/store-with-agents.ts';
import { newIdentity } from '../../support/identities.ts';
import { exposuresOf } from '../../support/public-world.ts';
import { failsWith } from '../../support/vectors.ts';

function world(profileName = 'My Demo, v2') {
  const { store, aids } = storeWithAgents(2);
  const [aid, other] = aids as [Aid, Aid];
  const exposures = exposuresOf(store);
  const held: HeldName[] = [];
  const asked: string[] = [];
  let service: { acceptsCalls: boolean } | null = { acceptsCalls: true };
  const handlers = exposureHandlers({
    exposures,
    certificates: {
      state: () => ({
        notAfter: null,
        error: { code: 'certificate_limited', message: 'too many' },
      }),
    },
    publicNames: {
      list: () => held,
      entries: () => [...new Set(held.map(({ entry }) => entry))],
      claim: async (agent, name, entry, token) => {
        asked.push(`${name} ${token}`);
        if (name === 'taken') throw new SvcError('name_taken');
        const whole = name.includes('.') ? name : `${name}.vps.test`;
        const one = { name: whole, aid: agent, entry, state: 'held', error: null, heldAt: 1, seenAt: 1 } as const;
        held.push(one);
        return one;
      },
      release: async (_aid, name) => {
        const at = held.findIndex((one) => one.name === name);
        held.splice(at, 1);
      },
    },
    serviceOf: () => service,
    nameOf: (agent) => (agent === aid ? profileName : undefined),
  });
  const context = {} as never;
  return {
    aid,
    other,
    asked,
    held,
    bind: (bound: typeof service) => {
      service = bound;
    },
    open: (input: object) => handlers.exposureOpen({ aid, ...input }, context),
    list: async () => (await handlers.exposureList({}, context)).exposures,
    off: (id: string) => handlers.exposureOff({ id }, context),
    addToken: (input: object) => handlers.exposureTokenAdd(input as never, context),
    removeToken: (id: string, token: string) => handlers.exposureTokenRemove({ id, token }, context),
  };
}

test('an agent is exposed at a name of its own, and the entry in use is the default', async () => {
  const { open, list, off, aid, other, asked, held } = world();
  await assert.rejects(async () => await open({}), failsWith('no_entry'));
  const entry = newIdentity().aid;
  const first = await open({ at: entry, invitation_token: 'abc' });
  assert.equal(first.url, 'https://my-demo-v2.vps.test');
  assert.deepEqual(asked, ['my-demo-v2 abc']);
  assert.deepEqual([first.aid, first.entry, first.mode, first.state], [aid, entry, 'tokens', 'failed']);
  assert.deepEqual(first.problem, { code: 'certificate_limited', message: 'too many' });
  // The name is held already.
  const same = await open({ mode: 'public' });
  assert.deepEqual([same.id, same.mode, asked.length], [first.id, 'public', 1]);
  const another = await open({ aid: other });
  assert.equal(another.url, `https://a${other.slice(-8)}.vps.test`);
  await open({ at: newIdentity().aid, name: 'second' });
  await assert.rejects(async () => await open({ name: 'third' }), failsWith('no_entry'));
  assert.equal((await list()).length, 3);
  await off(first.id);
  assert.equal((await list()).length, 2);
  assert.ok(!held.some(({ name }) => name === 'my-demo-v2.vps.test'));
});

test('each wrong request has its own error', async () => {
  const { open, bind, list } = world();
  const at = newIdentity().aid;
  await assert.rejects(async () => await open({ at, mode: 'mcp' }), failsWith('not_supported'));
  await assert.rejects(async () => await open({ at, mode: 'only' }), failsWith('invalid_request'));
  await assert.rejects(async () => await open({ at, rules: ['GET /'] }), failsWith('invalid_request'));
  await assert.rejects(async () => await open({ at, name: 'taken' }), failsWith('name_taken'));
  bind({ acceptsCalls: false });
  await assert.rejects(async () => await open({ at }), failsWith('tunnels_only'));
  bind(null);
  await assert.rejects(async () => await open({ at }), failsWith('no_inbound'));
  assert.deepEqual(await list(), []);
});

test('the default name is cut to a label that can be a name', async () => {
  const { open } = world(`${'a'.repeat(39)} long name`);
  assert.equal((await open({ at: newIdentity().aid })).url, `https://${'a'.repeat(39)}.vps.test`);
});

test('tokens are listed without their text, and removed by label', async () => {
  const { open, addToken, removeToken, list } = world();
  const { id } = await open({ at: newIdentity().aid, mode: 'only', rules: ['POST /hook'] });
  const made = await addToken({ id, label: 'laptop', rules: ['GET /a'], expires_at: '2100-01-01T00:00:00.000Z' });
  assert.match(made.token, /^svcp_[\w-]{40}$/);
  const [exposure] = await list();
  assert.ok(!JSON.stringify(exposure).includes(made.token.slice(5)));
  assert.deepEqual(
    exposure?.tokens.map(({ label, rules, expires_at }) => [label, rules, expires_at]),
    [['laptop', ['GET /a'], '2100-01-01T00:00:00.000Z']],
  );
  await removeToken(id, 'laptop');
  assert.deepEqual((await list())[0]?.tokens, []);
  assert.throws(() => removeToken(id, 'laptop'), failsWith('not_found'));
});
