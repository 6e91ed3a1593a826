import assert from 'node:assert/strict';
import { test } from 'node:test';
import { mergeNames } from '../../../src/foundation/labels.ts';
import { Names } from '../../../src/surfaces/cli/names.ts';
import { AnsweringDaemon } from '../../support/answering-daemon.ts';
import { runSvc } from '../../support/cli-run.ts';
import { newIdentity } from '../../support/identities.ts';

const [bob, own, stranger] = [newIdentity().aid, newIdentity().aid, newIdentity().aid];
const ID = '0123456789abcdef';
const TIME = '2026-01-01T00:00:00.000Z';

const TUNNEL = {
  ...{ id: ID, local_aid: own, listen: '127.0.0.1:4000', is_relayed: false, path: 'direct', remote_addr: '' },
  ...{ rtt_ms: 1, opened_at: TIME, last_activity_at: TIME, active_conns: 0, bytes_up: 0, bytes_down: 0 },
  idle_timeout_sec: 360,
};

function tunnels(...aids: readonly string[]) {
  return { tunnels: aids.map((remote_aid) => ({ ...TUNNEL, remote_aid })), closed: [] };
}

/** A daemon that knows `bob` by a label, `own` by its name, and `stranger` by a tunnel. */
const ANSWERS: Readonly<Record<string, object>> = {
  'GET /node/address-book': { aliases: { [bob]: 'bob' }, favorites: [] },
  'GET /agents?limit=200': { agents: [{ aid: own, name: 'Walker' }] },
  'GET /tunnel': tunnels(bob, own, stranger),
};

test('lists show labels, names or unique prefixes; --full and --json show complete AIDs', async (t) => {
  const daemon = await AnsweringDaemon.start(t, (line) => [200, ANSWERS[line] ?? {}]);
  const env = { SVC_API: daemon.api };
  const shown = await runSvc(['tunnel', 'status'], { env });
  const rows = shown.stdout.split('\n').slice(1, 4);
  for (const [i, who] of ['bob', 'Walker', `${stranger.slice(0, 12)}…`].entries())
    assert.match(rows[i] ?? '', new RegExp(`^01234567…  127\\.0\\.0\\.1:4000  ${who} `));
  const full = await runSvc(['tunnel', 'status', '--full'], { env });
  for (const who of [`${ID} .*${bob} \\(bob\\)`, `${own} \\(Walker\\)`, `${stranger} `])
    assert.match(full.stdout, new RegExp(who));
  const json = await runSvc(['tunnel', 'status', '--json'], { env });
  assert.deepEqual(JSON.parse(json.stdout), tunnels(bob, own, stranger));
});

test('fits a terminal of 60 columns', async (t) => {
  const daemon = await AnsweringDaemon.start(t, (line) => [200, ANSWERS[line] ?? {}]);
  const { stdout } = await runSvc(['tunnel', 'status'], { env: { SVC_API: daemon.api, COLUMNS: '60' } });
  assert.deepEqual(
    stdout.split('\n').filter((line) => line.length > 60),
    [],
  );
  assert.match(stdout, /^01234567…\n {2}listen: 127\.0\.0\.1:4000 {2}remote: bob {2}path: direct/);
});

test('accepts what it shows: names and AID prefixes', async (t) => {
  const daemon = await AnsweringDaemon.start(t, (line) =>
    line.startsWith('POST /resolve/')
      ? [404, { error: 'resolve_failed', message: 'Not found.' }]
      : [200, ANSWERS[line] ?? {}],
  );
  const resolved = async (typed: string) => {
    const { stderr } = await runSvc(['resolve', typed], { env: { SVC_API: daemon.api } });
    const asked = daemon.asked.splice(0).find((line) => line.startsWith('POST /resolve/'));
    return asked?.slice('POST /resolve/'.length) ?? stderr;
  };
  assert.equal(await resolved('BOB'), bob);
  assert.equal(await resolved('walker'), own);
  for (const aid of [bob, own, stranger]) {
    assert.equal(await resolved(`${aid.slice(0, 12)}…`), aid);
    assert.equal(await resolved(aid.slice(0, 30)), aid);
  }
  // Too short to distinguish a person from a stranger, and an unknown name.
  assert.match(await resolved(stranger.slice(0, 11)), /is not a valid AID/);
  assert.match(await resolved('nobody'), /is neither an AID nor a label/);
  assert.match(await resolved(newIdentity().aid.slice(0, 20)), /is not a valid AID/);
});

test('an ambiguous name is not shown, and a label cannot be used twice', () => {
  const agents = [
    { aid: own, name: 'Same' },
    { aid: stranger, name: 'same' },
  ];
  assert.deepEqual(mergeNames({ aliases: {} }, agents), new Map());
  assert.deepEqual(mergeNames({ aliases: { [bob]: 'Same' } }, [{ aid: own, name: 'same' }]), new Map([[bob, 'Same']]));
  assert.deepEqual(mergeNames({ aliases: { [own]: 'mine' } }, [{ aid: own, name: 'Same' }]), new Map([[own, 'mine']]));
});

test('shows prefixes long enough to differ, and the subject of a response completely', () => {
  const like = `${stranger.slice(0, 14)}${stranger[14] === 'q' ? 'p' : 'q'}${stranger.slice(15)}`;
  const names = new Names(new Map([[bob, 'bob']]), [stranger, like], false);
  assert.equal(names.short(stranger), `${stranger.slice(0, 15)}…`);
  assert.deepEqual(names.in({ aid: bob, members: [{ aid: bob }, { aid: like }] }), {
    aid: `${bob} (bob)`,
    members: [{ aid: 'bob' }, { aid: `${like.slice(0, 15)}…` }],
  });
});
