import assert from 'node:assert/strict';
import { Duplex } from 'node:stream';
import { test } from 'node:test';
import { Api, ApiReference } from '../../src/daemon/api.ts';

const OBSERVER = () => ({ tool: () => {}, answered: () => {} });

function fakeRest() {
  const served: Duplex[] = [];
  return {
    served,
    address: { host: '127.0.0.1', port: 2121 },
    serveRemoteAdmin: (stream: Duplex) => void served.push(stream),
  };
}

test('the API has no address before it is there, nor where it does not listen', () => {
  const [listening, silent] = [new ApiReference(true), new ApiReference(false)];
  assert.equal(listening.address, null);
  for (const api of [listening, silent]) api.attach(fakeRest());
  assert.deepEqual(listening.address, { host: '127.0.0.1', port: 2121 });
  assert.equal(silent.address, null);
});

test('an administrator who comes before the API is cut off, later ones are served', () => {
  const api = new ApiReference(true);
  const [early, late] = [new Duplex(), new Duplex()];
  api.serveRemoteAdmin(early, OBSERVER);
  assert.equal(early.destroyed, true);
  const rest = fakeRest();
  api.attach(rest);
  api.serveRemoteAdmin(late, OBSERVER);
  assert.deepEqual(rest.served, [late]);
  assert.equal(late.destroyed, false);
});

test('the streams start before the listener and end before it, once, even where that fails', async () => {
  const said: string[] = [];
  const part = (name: string, failure?: Error) => ({
    start: async () => void said.push(`start ${name}`),
    stop: async () => {
      said.push(`stop ${name}`);
      if (failure !== undefined) throw failure;
    },
  });
  const api = new Api({ streams: part('streams', new Error('stuck')), rest: part('rest') });
  await api.start();
  await assert.rejects(api.stop(), /stuck/);
  assert.deepEqual(said, ['start streams', 'start rest', 'stop streams', 'stop rest']);
});
