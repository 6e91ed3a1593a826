import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DIRECT_SEARCH_MS, notDirectReason, punchable } from '../../../src/capabilities/reach/not-direct.ts';
import type { NatMapping } from '../../../src/foundation/domain/directory.ts';
import { plainPath } from '../../../src/network/transport/path.ts';

const [UNKNOWN, PORT_RESTRICTED, SYMMETRIC] = [0, 3, 4];
const AT = { host: '192.0.2.1', port: 4122 };

function judged(ours: NatMapping, theirs: number, helpers: number, haveIpv6 = false): [boolean | null, string | null] {
  const { may, reason } = punchable({ ours, theirs, helpers, haveIpv6 });
  return [may, reason];
}

test('the NATs of both nodes decide whether punching can work', () => {
  assert.deepEqual(judged('cone', PORT_RESTRICTED, 1), [true, null]);
  assert.deepEqual(judged('cone', SYMMETRIC, 2), [true, null]);
  assert.deepEqual(judged('symmetric', PORT_RESTRICTED, 2), [true, null]);
  assert.deepEqual(judged('symmetric', SYMMETRIC, 3), [false, 'both_symmetric']);
  assert.deepEqual(judged('symmetric', PORT_RESTRICTED, 1), [false, 'one_helper']);
  assert.deepEqual(judged('open', PORT_RESTRICTED, 0), [false, 'no_helpers']);
  assert.deepEqual(judged('open', SYMMETRIC, 1), [true, null]);
  assert.deepEqual(judged('symmetric', SYMMETRIC, 1, true), [true, null]);
  assert.deepEqual(judged('symmetric', SYMMETRIC, 0, true), [false, 'no_helpers']);
  assert.deepEqual(judged('cone', SYMMETRIC, 1), [false, 'one_helper']);
  assert.deepEqual(judged('unknown', PORT_RESTRICTED, 1), [null, null]);
  assert.deepEqual(judged('cone', UNKNOWN, 1), [null, null]);
});

test('a relayed connection has a reason why it is not direct, other connections have none', () => {
  const sides = { ours: 'cone', theirs: PORT_RESTRICTED, helpers: 2, haveIpv6: false } as const;
  const link = { path: plainPath('relay', AT), openedAt: 1000 };
  assert.equal(notDirectReason(link, sides, 1000), 'looking');
  assert.equal(notDirectReason(link, sides, 1000 + DIRECT_SEARCH_MS), 'punching_failed');
  assert.equal(notDirectReason(link, { ...sides, ours: 'symmetric', theirs: SYMMETRIC }, 1000), 'both_symmetric');
  assert.equal(notDirectReason({ ...link, path: plainPath('punched', AT) }, sides, 1000), null);
  assert.equal(notDirectReason(null, sides, 1000), 'not_reached');
});
