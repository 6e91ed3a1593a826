import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { SvcError } from '../../src/foundation/errors.ts';
import { KeyPair } from '../../src/foundation/identity/keys.ts';
import type { LogFormat, LogLevel } from '../../src/foundation/log.ts';
import { Logger } from '../../src/foundation/logger.ts';
import { TestClock } from '../support/test-clock.ts';

function setUp(format: LogFormat = 'text', level: LogLevel = 'info') {
  const lines: string[] = [];
  const logger = new Logger(
    { format, level },
    { clock: new TestClock(), destination: { write: (line) => lines.push(line) } },
  );
  return { logger, lines };
}

/** The fields that a JSON line carries for `fields`. */
function logged(fields: Record<string, unknown>): Record<string, unknown> {
  const { logger, lines } = setUp('json');
  logger.info(fields, 'm');
  return JSON.parse(lines.join(''));
}

test('text is one readable line', () => {
  const { logger, lines } = setUp();
  logger.info({ peers: 3, addr: '127.0.0.1:4121', from: 'a b', on: true, none: null, list: [1, 'x'] }, 'joined');
  logger.child('dht').child('store').warn({}, '100% full');
  assert.deepEqual(lines, [
    '2026-01-01T00:00:00.000Z INFO  joined peers=3 addr=127.0.0.1:4121 from="a b" on=true none=null list=[1,"x"]\n',
    '2026-01-01T00:00:00.000Z WARN  dht.store: 100% full\n',
  ]);
});

test('json is one object per line', () => {
  const { logger, lines } = setUp('json');
  logger.child('dht').error({ code: 'timeout', n: 1n }, 'a %s "b"');
  assert.deepEqual(lines, [
    '{"level":"error","time":"2026-01-01T00:00:00.000Z","component":"dht","code":"timeout","n":"1","msg":"a %s \\"b\\""}\n',
  ]);
});

test('level and format change live, for children too', () => {
  const { logger, lines } = setUp();
  const child = logger.child('c');
  child.debug({}, 'one');
  logger.setLevel('debug');
  child.debug({}, 'two');
  logger.setFormat('json');
  child.debug({}, 'three');
  logger.setLevel('error');
  child.warn({}, 'four');
  assert.equal(lines.length, 2);
  assert.match(lines[0] ?? '', /DEBUG c: two\n$/);
  assert.match(lines[1] ?? '', /"msg":"three"/);
});

test('a level that is off costs no look at the fields', () => {
  const { logger, lines } = setUp();
  const fields = Object.defineProperty({}, 'x', { enumerable: true, get: () => assert.fail('looked at') });
  logger.debug(fields, 'm');
  assert.deepEqual(lines, []);
});

test('redacts fields with secret names at any depth, and secrets in texts', () => {
  const hidden = '[hidden]';
  const secret = 'hunter2';
  const { api_token, Authorization, nested, list, has_token, error, text } = logged({
    api_token: secret,
    Authorization: `Bearer ${secret}`,
    nested: { clientSecret: secret, a: { privateKey: { d: secret }, password: [secret], seed: 5, passphrase: secret } },
    list: [{ cookie: secret, credential: secret, ok: 'seen' }],
    has_token: true,
    error: new Error(`refused Authorization: Bearer ${secret}`),
    text: `BASIC ${secret}, then bearer ${secret}`,
  });
  assert.deepEqual([api_token, Authorization, has_token], [hidden, hidden, true]);
  assert.deepEqual(nested, {
    clientSecret: hidden,
    a: { privateKey: hidden, password: hidden, seed: hidden, passphrase: hidden },
  });
  assert.deepEqual(list, [{ cookie: hidden, credential: hidden, ok: 'seen' }]);
  assert.doesNotMatch(JSON.stringify([error, text]), /hunter2/);
  const { logger, lines } = setUp();
  logger.info({}, `sent Authorization: Bearer ${secret}`);
  assert.doesNotMatch(lines.join(''), /hunter2/);
});

test('shows neither bytes nor the inside of objects', () => {
  const pair = KeyPair.fromSeed(new Uint8Array(32).fill(7));
  class Holder {
    readonly inside = 'hunter2';
  }
  const {
    bytes,
    buffer,
    pair: shown,
    holder,
    map,
  } = logged({
    bytes: new Uint8Array(32),
    buffer: Buffer.from('hunter2'),
    pair,
    holder: new Holder(),
    map: new Map([['a', 'hunter2']]),
  });
  assert.deepEqual([bytes, buffer, shown, holder, map], ['[32 bytes]', '[7 bytes]', '[KeyPair]', '[Holder]', '[Map]']);
});

test('errors keep code, message and stack', () => {
  const { expected, unexpected } = logged({
    expected: new SvcError('timeout', { details: { peer: 'x', secret: 'y' }, cause: new Error('socket') }),
    unexpected: Object.assign(new TypeError('broken'), { code: 'EIO' }),
  }) as Record<string, Record<string, unknown>>;
  assert.equal(expected?.['code'], 'timeout');
  assert.equal(expected?.['stack'], undefined);
  assert.deepEqual(expected?.['details'], { peer: 'x', secret: '[hidden]' });
  assert.match(JSON.stringify(expected?.['cause']), /"message":"socket"/);
  assert.deepEqual([unexpected?.['type'], unexpected?.['code']], ['TypeError', 'EIO']);
  assert.match(String(unexpected?.['stack']), /logger\.test\.ts/);
});

test('names of others do not reach the prototype', () => {
  const line = logged({ a: JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}') });
  assert.equal(JSON.stringify(line['a']), '{"__proto__":{"x":1},"constructor":2}');
});

test('a line stays bounded', () => {
  const circle: Record<string, unknown> = {};
  circle['self'] = circle;
  const { lines, logger } = setUp('json');
  logger.info({ text: 'x'.repeat(1e6), list: Array.from({ length: 1e5 }, () => 'y'), circle }, 'z'.repeat(1e6));
  assert.ok(lines.join('').length < 10_000);
});

test('fields cannot pass for the parts of the line', () => {
  const line = logged({ level: 'debug', time: 'never', component: 'other', msg: 'other' });
  assert.deepEqual([line['level'], line['msg'], line['component'], line['level_']], ['info', 'm', undefined, 'debug']);
  const { logger, lines } = setUp();
  logger.info({ name: 'x peers=9', 'a b=c': 'y' }, 'm');
  assert.match(lines.join(''), / m name="x peers=9" "a b=c"=y\n$/);
});

test('no text of others reaches the terminal as more than text', () => {
  const nasty = fc.string({
    unit: fc.oneof(
      fc.constantFrom(
        '\u001b[2J',
        '\r',
        '\n',
        '\u009b',
        '\u0085',
        '\u2028',
        '\u202e',
        '\u2066',
        '\u007f',
        '\u0000',
        '"',
        '\\',
      ),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 2 }),
    ),
    maxLength: 20,
  });
  fc.assert(
    fc.property(nasty, nasty, nasty, fc.constantFrom<LogFormat>('text', 'json'), (message, name, value, format) => {
      const { logger, lines } = setUp(format);
      logger.info({ [`k${name}`]: value, nested: { [name]: [value] } }, message);
      const [line = '', ...more] = lines;
      assert.equal(more.length, 0);
      assert.match(line, /\n$/);
      assert.doesNotMatch(line.slice(0, -1), /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u);
      if (format === 'json') {
        const parsed: Record<string, unknown> = JSON.parse(line);
        assert.equal(parsed['msg'], message);
      }
    }),
    { seed: 6, numRuns: 200 },
  );
});

test('writes to stderr and never to stdout, even if the process exits immediately', () => {
  const logger = new URL('../../src/foundation/logger.ts', import.meta.url).href;
  const clock = new URL('../../src/foundation/clock.ts', import.meta.url).href;
  const program = `
    const { Logger } = await import('${logger}');
    const { systemClock } = await import('${clock}');
    const log = new Logger({ level: 'info', format: 'text' }, { clock: systemClock });
    for (let i = 0; i < 1000; i += 1) log.info({ i }, 'line');
    log.flush();
    process.exit(0);`;
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert.equal(stdout, '');
  const lines = stderr.trimEnd().split('\n');
  assert.equal(lines.length, 1000);
  assert.match(lines.at(-1) ?? '', /INFO {2}line i=999$/);
});

test('a user reads warnings and errors, unless the level was chosen; the recent lines have all', () => {
  const [lines, recent]: [string[], string[]] = [[], []];
  const logger = new Logger(
    { format: 'text', level: 'info', isForUser: true },
    {
      clock: new TestClock(),
      destination: { write: (line) => lines.push(line) },
      recent: { add: (json) => recent.push(json) },
    },
  );
  logger.info({}, 'joined');
  logger.child('dht').info({}, 'joined');
  assert.deepEqual([lines.length, recent.length], [0, 2]);
  logger.warn({}, 'slow');
  logger.setLevel('debug');
  logger.info({}, 'joined');
  assert.deepEqual([lines.length, recent.length], [2, 4]);
});
