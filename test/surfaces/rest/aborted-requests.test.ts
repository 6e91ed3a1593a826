/** Clients that abort a request midway. The daemon and all other requests must be unaffected. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eventually } from '../../support/eventually.ts';
import { edgesWorld, open, speak } from './edges-world.ts';

const JSON_TYPE = 'Content-Type: application/json\r\n';

/** Incomplete requests at the moment the client disconnects. */
const BEGUN: readonly (readonly [name: string, method: string, lines: string, body: string])[] = [
  ['Content-Length', 'POST', 'Content-Length: 1000\r\n', 'abc'],
  ['chunks', 'POST', 'Transfer-Encoding: chunked\r\n', '3\r\nabc\r\n'],
  ['Expect', 'PUT', 'Expect: 100-continue\r\nContent-Length: 1000\r\n', ''],
  ['JSON in chunks', 'POST', `${JSON_TYPE}Transfer-Encoding: chunked\r\n`, '9\r\n{"a":1}\n{\r\n'],
  ['an upgrade', 'GET', 'Connection: Upgrade\r\nUpgrade: websocket\r\n', ''],
];

async function abort(t: TestContext, how: 'close' | 'reset'): Promise<void> {
  let answers = false;
  const world = await edgesWorld(t, (_head, socket) => {
    if (answers) socket.end('HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok');
  });
  for (const edge of world.edges)
    for (const [name, method, lines, body] of BEGUN) {
      // The close of an upgrade request may be a half-close. This is known only after the service has responded.
      if (how === 'close' && name === 'an upgrade') continue;
      answers = false;
      const client = open(edge);
      const before = world.heads.length;
      client.socket.write(`${method} ${edge.prefix}/ HTTP/1.1\r\nHost: localhost\r\n${lines}\r\n${body}`);
      await eventually(`${name}: the service has the request`, () => world.heads.length > before);
      if (how === 'reset') client.socket.resetAndDestroy();
      else client.socket.destroy();
      await eventually(`${name}: the call is aborted`, () => world.calls.server.active === 0);
      answers = true;
      assert.match(await speak(edge, '/'), /^HTTP\/1\.1 200 /, `${edge.name}: ${name}`);
    }
}

test('a request that its client closes affects no other request', (t) => abort(t, 'close'));

test('a request that its client resets affects no other request', (t) => abort(t, 'reset'));
