import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PendingCounters } from '../../../src/capabilities/events/pending-counters.ts';
import { newIdentity } from '../../support/identities.ts';

const one = newIdentity().aid;
const two = newIdentity().aid;

test('counters of all providers are merged, including zeros, without agents that have nothing pending', () => {
  const counters = new PendingCounters([
    () => new Map([[one, { mailbox: 2 }]]),
    () =>
      new Map([
        [one, { chat_unread: 3, chat_invites: 0 }],
        [two, { chat_unread: 0 }],
      ]),
    () => new Map([[one, { mailbox: 1 }]]),
  ]);
  assert.deepEqual(counters.view(), { [one]: { mailbox: 3, chat_invites: 0, chat_unread: 3 } });
  assert.deepEqual(counters.view(two), {});
});

test('for one agent only its counters are shown, for any result of a provider', () => {
  const asked: unknown[] = [];
  const counters = new PendingCounters([
    (aid) => {
      asked.push(aid);
      return new Map([
        [one, { mailbox: 1 }],
        [two, { mailbox: 1 }],
      ]);
    },
  ]);
  assert.deepEqual(counters.view(two), { [two]: { mailbox: 1, chat_invites: 0, chat_unread: 0 } });
  assert.deepEqual(asked, [two]);
});
