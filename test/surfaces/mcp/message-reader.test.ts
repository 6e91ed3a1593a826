import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseIntegers } from '../../../src/foundation/json.ts';
import {
  answerTo,
  MAX_SHARED_MESSAGE_BYTES,
  MessageLines,
  MessageScan,
  readMessageValue,
} from '../../../src/surfaces/mcp/message-reader.ts';

const MESSAGE = { jsonrpc: '2.0', method: 'notifications/x' };

/** The messages of a text, and the error responses to what is not a message. */
function read(text: string | Buffer, { skipsText = false, chunk = 64 * 1024 } = {}) {
  const answers: string[] = [];
  const lines = new MessageLines({ onOdd: (odd) => answers.push(JSON.stringify(answerTo(odd))), skipsText });
  const messages: object[] = [];
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += chunk) {
    lines.append(bytes.subarray(at, at + chunk));
    for (let one = lines.readMessage(); one !== null; one = lines.readMessage()) messages.push(one);
  }
  return { messages, answers };
}

/** An error response without its text. */
function brief(text: string): string {
  return text.replace(/"message":"(?:[^"\\]|\\.)*"/, '"message":""');
}

test('lines that cannot be messages are skipped without being parsed', (t) => {
  const lines = new MessageLines({ onOdd: () => assert.fail('reported'), skipsText: true });
  const parse = t.mock.method(JSON, 'parse');
  for (const noise of ['\n', 'text\n', '\u001b[31mred\n', '\u0000\u00ff\n'])
    lines.append(Buffer.from(noise.repeat(10_000)));
  for (const part of ['te', 'xt', '\n', ' ', JSON.stringify(MESSAGE), '\n']) lines.append(Buffer.from(part));
  assert.deepEqual(lines.readMessage(), MESSAGE);
  assert.equal(lines.readMessage(), null);
  assert.equal(parse.mock.callCount(), 1);
});

describe('a line that is not a message gets an error response, and the next message is read', () => {
  const request = (id: string): string => `{"jsonrpc":"2.0","id":${id},"method":"ping"}`;
  const cases: Readonly<Record<string, readonly [line: string, code: number, id: string]>> = {
    text: ['hello', -32700, 'null'],
    'half a message': [request('7').slice(0, -1), -32700, 'null'],
    'a number': ['7', -32600, 'null'],
    null: ['null', -32600, 'null'],
    'an empty batch': ['[]', -32600, 'null'],
    'a batch in a batch': ['[[]]', -32600, 'null'],
    'a log line': ['{"level":"info","msg":"up"}', -32600, 'null'],
    'no version': ['{"id":7,"method":"ping"}', -32600, '7'],
    'parameters in a list': ['{"jsonrpc":"2.0","id":"a","method":"ping","params":[]}', -32600, '"a"'],
    'an ID beyond 2^53': [request('9007199254740993'), -32600, '9007199254740993'],
    'an ID with a fraction': [request('1.5'), -32600, '1.5'],
    'an ID of null': [request('null'), -32600, 'null'],
    'an ID in a list': [request('[1]'), -32600, 'null'],
    'deep nesting': [
      `{"jsonrpc":"2.0","id":3,"method":"x","params":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
      -32600,
      '3',
    ],
    'a repeated member': [
      '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","\\u006eame":"b"}}',
      -32600,
      '4',
    ],
    'a member in another case': [
      '{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"a","Name":"b"}}',
      -32600,
      '4',
    ],
  };
  for (const [name, [line, code, id]] of Object.entries(cases))
    test(name, () => {
      const { messages, answers } = read(`${line}\n${JSON.stringify(MESSAGE)}\n`);
      assert.deepEqual(answers.map(brief), [`{"jsonrpc":"2.0","id":${id},"error":{"code":${code},"message":""}}`]);
      assert.deepEqual(messages, [MESSAGE]);
    });
});

test('empty lines, a byte order mark, carriage returns and invalid UTF-8 are read', () => {
  const line = JSON.stringify(MESSAGE);
  const { messages, answers } = read(
    Buffer.concat([
      Buffer.from(`\uFEFF${line}\r\n\r\n  \n${line.replace('/x', '/')}`.slice(0, -2)),
      Buffer.from([0xe9]),
      Buffer.from('"}\n'),
    ]),
  );
  assert.deepEqual(answers, []);
  assert.deepEqual(messages, [MESSAGE, { ...MESSAGE, method: 'notifications/\uFFFD' }]);
});

test('an optional member may be null', () => {
  const request = { jsonrpc: '2.0', id: 1, method: 'tools/call' };
  const response = { jsonrpc: '2.0', id: 1, result: { content: null } };
  const error = { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'x' } };
  const call = { ...request, params: { name: 'x' } };
  const sent = [
    { ...request, params: null },
    { ...request, params: { ...call.params, _meta: null, arguments: null, cursor: null } },
    { ...request, params: { ...call.params, arguments: { own: null } } },
    { ...response, error: null },
    { ...error, result: null },
  ];
  const { messages, answers } = read(sent.map((one) => `${JSON.stringify(one)}\n`).join(''));
  assert.deepEqual(answers, []);
  assert.deepEqual(messages, [
    request,
    call,
    { ...request, params: { ...call.params, arguments: { own: null } } },
    response,
    error,
  ]);
});

test('the messages of a batch are read one by one', () => {
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' };
  const { messages, answers } = read(`${JSON.stringify([ping, 5, MESSAGE])}\n${JSON.stringify(MESSAGE)}\n`);
  assert.deepEqual(messages, [ping, MESSAGE, MESSAGE]);
  assert.equal(answers.length, 1);
  const long = read(`[${'1,'.repeat(100_000)}1]\n${JSON.stringify(MESSAGE)}\n`);
  assert.equal(long.answers.length, 1);
  assert.deepEqual(long.messages, [MESSAGE]);
});

describe('a message that is too long is named by its ID', () => {
  const data = 'a'.repeat(MAX_SHARED_MESSAGE_BYTES);
  const cases: Readonly<Record<string, readonly [line: string, kind: string, id: unknown]>> = {
    'a request': [
      `{"jsonrpc":"2.0","id":"big","method":"tools/call","params":{"id":1,"x":"${data}"}}`,
      'request',
      'big',
    ],
    'the ID at the end': [`{"result":{"content":[{"text":"${data}"}],"id":1},"jsonrpc":"2.0","id":12}`, 'response', 12],
    'spaces and escapes': [
      ` { "method" : "x\\"" , "params" : "\\\\\\"${data}" , "id" : "a\\u0062" } `,
      'request',
      'ab',
    ],
    'a notification': [`{"jsonrpc":"2.0","method":"x","params":"${data}"}`, 'other', null],
    'a large ID': [`{"id":9007199254740993,"method":"x","params":"${data}"}`, 'request', 'raw'],
    'a long ID': [`{"method":"x","id":"${data}"}`, 'request', null],
    'a batch': [`[{"id":1,"method":"x","params":"${data}"}]`, 'other', null],
    'no JSON': [data + data, 'other', null],
  };
  for (const [name, [line, kind, id]] of Object.entries(cases))
    test(name, () => {
      const { messages, answers } = read(`${line}\n${JSON.stringify(MESSAGE)}\n`);
      const scan = new MessageScan();
      scan.push(Buffer.from(line));
      assert.equal(scan.odd.kind, kind);
      const shown = id === 'raw' ? '9007199254740993' : JSON.stringify(id);
      assert.deepEqual(answers, [
        `{"jsonrpc":"2.0","id":${shown},"error":{"code":-32600,"message":"The message is longer than ${MAX_SHARED_MESSAGE_BYTES} bytes."}}`,
      ]);
      assert.deepEqual(messages, [MESSAGE]);
    });
});

test('a long line of text is skipped', () => {
  const { messages, answers } = read(`${'x'.repeat(2 * MAX_SHARED_MESSAGE_BYTES)}\n${JSON.stringify(MESSAGE)}\n`, {
    skipsText: true,
  });
  assert.deepEqual([messages, answers], [[MESSAGE], []]);
});

test('members that other parsers read as known ones are refused', () => {
  const params = { name: 'a', arguments: {}, _meta: { progressToken: 1 } };
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params };
  assert.ok('message' in readMessageValue(call));
  const twins: object[] = [
    { ...call, Method: 'x' },
    { ...call, params: { ...params, NAME: 'b' } },
    { ...call, params: { ...params, '\uFF4Eame': 'b' } },
    { ...call, params: { ...params, ['argument\u017F']: {} } },
    { ...call, params: { ...params, _META: {} } },
    { ...call, params: { ...params, _meta: { 'SVCD/caller': 'x' } } },
    { ...call, params: { ...params, _meta: { '\u017Fvcd/caller': 'x' } } },
    { ...call, params: { ...params, _meta: { 'IO.modelcontextprotocol/protocolVersion': 'x' } } },
    { ...call, params: { ...params, _meta: { progresstoken: 2 } } },
    { ...call, params: { ...params, requestID: 2 } },
    { ...call, params: { ...params, own: 1, Own: 2 } },
    { ...call, '\u0130d': 2 },
    { ...call, '\u0131d': 2 },
  ];
  for (const twin of twins) {
    const one = readMessageValue(twin);
    assert.match('odd' in one ? one.odd.why : '', /^The member ".*" is not allowed: /);
  }
  assert.ok(
    'message' in readMessageValue({ ...call, params: { ...params, _meta: { 'svcd/x': 1, Other: 1 }, Limit: 1 } }),
  );
});

test('large integers of a message are preserved', () => {
  const text = '{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":9007199254740993}}';
  const [message] = read(`${text}\n`).messages;
  assert.equal(JSON.stringify(message), JSON.stringify(parseIntegers(text)));
  assert.match(JSON.stringify(message), /9007199254740993/);
});
