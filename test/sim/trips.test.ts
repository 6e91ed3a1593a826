/** Round trips of single steps between complete nodes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from '../support/simulation.ts';

const TRIPS = {
  'publish, first': 2,
  'publish again': 1,
  'publish later': 2,
  'first call, agent and node unknown': 4,
  call: 1,
  'first call of a second agent on the node': 3,
  'restart until called again': 4.5,
  'killed until called again': 6,
  'first note: event at the receiver': 2.5,
  'first note: answered': 3,
  'another note: event at the receiver': 0.5,
  'another note: answered': 1,
  'note to an agent that is off': 2.5,
  'another note to it': 1,
};

test('each step takes its number of round trips', async () => {
  const { code, stdout, stderr } = await simulate(['trips']);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), TRIPS);
});
