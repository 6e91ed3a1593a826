/** Integers beyond 2^53 pass unchanged between a host and a wrapped server. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import { detach } from '../../../src/foundation/detached.ts';
import { parseIntegers } from '../../../src/foundation/json.ts';
import { Bridge } from '../../../src/surfaces/mcp-share/bridge.ts';
import { LargeIntegers } from '../../../src/surfaces/mcp-share/exact-json.ts';
import { open } from '../../../src/surfaces/mcp-share/open.ts';
import { readBytes } from '../../../src/surfaces/rest/json-body.ts';
import { eventually } from '../../support/eventually.ts';
import { AGENT, ALICE, callOf } from '../../support/shared-mcp.ts';

const LARGE = ['9007199254740993', '-18446744073709551616', '9223372036854775807'];
const TOOLS =
  '{"tools":[{"name":"raw","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775807}}}}]}';

/** A server that returns the text of the arguments unchanged. */
const SERVER = `
  const answer = (id, result) => process.stdout.write('{"jsonrpc":"2.0","id":' + JSON.stringify(id) + ',' + result + '}\\n');
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method } = JSON.parse(line);
    if (id === undefined) return;
    if (method === 'initialize')
      answer(id, '"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}');
    else if (method === 'tools/list') answer(id, '"result":' + ${JSON.stringify(TOOLS)});
    else if (method === 'tools/call')
      answer(id, '"result":{"content":[],"structuredContent":{"got":' + /"arguments":(\\{[^}]*\\})/.exec(line)[1] + '}}');
    else answer(id, '"error":{"code":-32601,"message":"no"}');
  });`;

/** A host and a shared server without daemons in between. The test sets the caller. */
async function host(t: TestContext) {
  const { begin } = await open(
    { command: process.execPath, args: ['-e', SERVER] },
    { environment: process.env, log: () => {}, lists: new Map([[ALICE, new Set(['raw'])]]), clock: systemClock },
  );
  const gate = await begin(AGENT);
  t.after(() => gate.close());
  const call = callOf(ALICE);
  const passOn = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await readBytes(request, 1_000_000);
    const headers = new Headers();
    for (const [name, value] of Object.entries(request.headers))
      if (typeof value === 'string' && name !== 'connection') headers.set(name, value);
    const method = request.method ?? 'GET';
    const answer = await call(`http://${gate.address}${request.url}`, {
      method,
      headers,
      ...(body.length === 0 ? {} : { body: new Uint8Array(body) }),
    });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    if (answer.body === null) response.end();
    else
      Readable.fromWeb(answer.body)
        .on('error', () => response.destroy())
        .pipe(response);
  };
  const between = createServer((request, response) => detach(passOn(request, response))).listen(0, '127.0.0.1');
  await once(between, 'listening');
  t.after(() => {
    between.closeAllConnections();
    between.close();
  });
  const { port } = between.address() as AddressInfo;
  const [input, output] = [new PassThrough(), new PassThrough()];
  let text = '';
  output.setEncoding('utf8').on('data', (part: string) => (text += part));
  const address = async (): Promise<URL> => new URL(`http://127.0.0.1:${port}/mcp`);
  const bridge = await Bridge.start({ input, output, address, clock: systemClock });
  t.after(async () => {
    input.end();
    await bridge.closed;
  });
  return async (message: string, id?: number): Promise<string> => {
    input.write(`${message}\n`);
    if (id === undefined) return '';
    const isIt = (line: string): boolean => line !== '' && (JSON.parse(line) as { id?: number }).id === id;
    return eventually('the answer', () => text.endsWith('\n') && text.split('\n').find(isIt));
  };
}

test('through a bridge, HTTP and a wrapped server, in both directions', async (t) => {
  const say = await host(t);
  const params = '{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}';
  await say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":${params}}`, 1);
  await say('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  const list = await say('{"jsonrpc":"2.0","id":2,"method":"tools/list"}', 2);
  assert.match(list, /"maximum":9223372036854775807[,}]/);
  const args = `{"n":[${LARGE.join(',')}],"text":"9007199254740993","small":12,"half":0.5}`;
  const answer = await say(
    `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"raw","arguments":${args}}}`,
    3,
  );
  assert.ok(answer.includes(`"got":${args}`), answer);
});

test('a message without large integers is parsed as usual', () => {
  for (const text of ['{"a":1,"id":7}', '[1,2.5,1e300]', '"9007199254740993"', '{"id":"x","b":1234567890123456}'])
    assert.deepEqual(parseIntegers(text), JSON.parse(text));
  assert.throws(() => parseIntegers('{"a":12345678901234567890'), SyntaxError);
  // Not integers: JavaScript's values match the JSON standard.
  assert.deepEqual(parseIntegers('[1234567890123456789.5,1e400]'), JSON.parse('[1234567890123456789.5,1e400]'));
});

test('marks belong to one bridge and cannot be forged', () => {
  const [one, other] = [new LargeIntegers(), new LargeIntegers()];
  const text = `{"n":${LARGE[0]}}`;
  const read: unknown = JSON.parse(one.marked(text));
  assert.equal(JSON.stringify(one.restored(read)), text);
  other.marked(text);
  assert.deepEqual(other.restored(read), read);
  assert.equal(one.marked('12345678901234567890 is no JSON {'), '12345678901234567890 is no JSON {');
});

test('complete events are marked, for any chunk boundaries', async () => {
  const large = new LargeIntegers();
  const events = `id: 12345678901234567890\nevent: message\ndata: {"n":${LARGE[1]}}\n\n: data\ndata:{"ä":${LARGE[2]}}\n\ndata: rest`;
  const bytes = Buffer.from(events);
  const pieces = async function* () {
    for (const byte of bytes) yield Buffer.of(byte);
  };
  let out = '';
  for await (const part of large.markedEvents(
    pieces(),
    () => undefined,
    (data) => data,
  ))
    out += part;
  const lines = out.split('\n');
  assert.deepEqual([lines[0], lines[4], lines.length], ['id: 12345678901234567890', ': data', 9]);
  const values = [lines[2], lines[6]].map((line = '') => large.restored(JSON.parse(line.replace('data: ', ''))));
  assert.equal(JSON.stringify(values), `[{"n":${LARGE[1]}},{"ä":${LARGE[2]}}]`);
});
