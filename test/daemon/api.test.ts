import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { Api, ApiReference } from '../../src/daemon/api.ts';
import type { Component } from '../../src/foundation/lifecycle.ts';

const ADDRESS = { host: '127.0.0.1', port: 2121 };
const observer = () => ({ tool: () => {}, answered: () => {} });

test('the API has an address after it is attached, and none if it does not listen', () => {
  const rest = { address: ADDRESS, serveRemoteAdmin: () => assert.fail() };
  const listening = new ApiReference(true);
  assert.equal(listening.address, null);
  listening.attach(rest);
  assert.deepEqual(listening.address, ADDRESS);
  const silent = new ApiReference(false);
  silent.attach(rest);
  assert.equal(silent.address, null);
});

test('an administrator before the API is attached is disconnected, later ones are served', () => {
  for (const listens of [true, false]) {
    const api = new ApiReference(listens);
    const early = new PassThrough();
    api.serveRemoteAdmin(early, observer);
    assert.equal(early.destroyed, true);
    const served: unknown[] = [];
    api.attach({ address: ADDRESS, serveRemoteAdmin: (...args) => void served.push(...args) });
    const later = new PassThrough();
    api.serveRemoteAdmin(later, observer);
    assert.deepEqual(served, [later, observer]);
    assert.equal(later.destroyed, false);
  }
});

test('endless streams start before the listener and stop before it', async () => {
  const heard: string[] = [];
  const part = (name: string, failure?: Error): Component => ({
    start: async () => void heard.push(`start ${name}`),
    async stop() {
      heard.push(`stop ${name}`);
      if (failure !== undefined) throw failure;
    },
  });
  const api = new Api({ streams: [part('streams')], rest: part('rest') });
  await api.start();
  await api.stop();
  assert.deepEqual(heard, ['start streams', 'start rest', 'stop streams', 'stop rest']);
  heard.length = 0;
  const failure = new Error('streams');
  await assert.rejects(new Api({ streams: [part('streams', failure)], rest: part('rest') }).stop(), failure);
  assert.deepEqual(heard, ['stop streams', 'stop rest'], 'the listener stops anyway');
});
