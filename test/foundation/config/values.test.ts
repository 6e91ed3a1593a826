import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseValueText } from '../../../src/foundation/config/config-service.ts';
import { CONFIG_KEYS, type ConfigKey, isConfigKey } from '../../../src/foundation/config/schema.ts';
import { checkValue } from '../../../src/foundation/config/values.ts';

const good: Partial<Record<ConfigKey, unknown[]>> = {
  listen_addr: [':4121', '0.0.0.0:0', '[::]:65535', 'localhost:1'],
  quic_listen_addr: ['', ':1'],
  bootstrap: [[], ['a.example:1', '[::1]:4121', '10.0.0.1:65535', 'a.example', '2001:db8::1']],
  name: ['', 'Anna’s laptop', 'Анна'],
  network: ['', 'a', 'home-lab_2.x'],
  fallback_host: ['', '203.0.113.7', '2001:db8::1', 'node.example.org'],
  min_observed_peers: [1, 100],
  api_addr: ['127.0.0.1:2121', ':0'],
  api_token: ['', 'a1b2c3d4', 'abc-._~+/123=='],
  key_dir: ['', '/var/lib/keys'],
  tls_listen: ['auto', 'none', ':443', '0.0.0.0:443, [::1]:8443', 'http://127.0.0.1:8443', 'http://localhost:80/'],
  tls_sessions: [0, 4096],
  tls_key: ['', '/etc/key.pem'],
  files_root: ['', '/srv/files'],
  log_level: ['debug', 'info', 'warn', 'error'],
  log_format: ['text', 'json'],
  turn_servers: [
    [],
    [{ url: 'turn:a.example', username: 'u', credential: 'p' }],
    [{ url: 'turns:[::1]:443?transport=tcp', credential: 's', credential_type: 'hmac' }],
    [
      {
        url: 'turn:10.0.0.1:3478?transport=udp',
        credential_type: 'rest_api',
        credential_url: 'https://a.example/turn?key=1',
      },
    ],
    [{ url: 'turn:a', credential_type: 'rest_api', credential_url: 'http://[::1]:8080/' }],
  ],
};

const bad: Partial<Record<ConfigKey, unknown[]>> = {
  listen_addr: ['', 'x', ':70000', 4121, null, `${'a'.repeat(2000)}:1`],
  quic_listen_addr: ['a', ' '],
  bootstrap: [
    'a.example:1',
    [':1'],
    ['a:0'],
    ['a b'],
    ['x@a:1'],
    [1],
    [['a:1']],
    Array.from({ length: 65 }, () => 'a:1'),
    {},
  ],
  name: [' ', 'aid1qqqq', '203.0.113.7', 'Аnna', 'a'.repeat(65)],
  network: ['A', 'a b', '-a', 'a'.repeat(64), 'a\n'],
  fallback_host: ['a:1', '[::1]', 'http://a', '1.2.3'],
  min_observed_peers: [0, 101, 1.5, '3', true, Number.NaN],
  api_token: [
    'short',
    '***',
    '***********',
    'with blank',
    'pass=word=x',
    'ünïcödé-token',
    'a'.repeat(257),
    'abcdefgh\r\nX: y',
  ],
  key_dir: ['keys', './keys', '~/keys', '/a\u0000b'],
  files_root: ['files'],
  tls_listen: [
    '',
    '443',
    'a',
    ':1,',
    'auto,:1',
    'http://0.0.0.0:8443',
    'https://127.0.0.1:1',
    Array(9).fill(':1').join(),
  ],
  tls_sessions: [-1, 4097, 1.5],
  tls_cert: ['cert.pem'],
  log_level: ['trace', 'INFO', '', 3],
  log_format: ['xml'],
  mdns: ['true', 1, null],
  turn_servers: [
    'turn:a',
    [{}],
    [{ url: '' }],
    [{ url: 'turn:a' }],
    [{ url: 'turn:a', username: 'u' }],
    [{ url: 'stun:a', username: 'u', credential: 'p' }],
    [{ url: 'turn:a:99999', username: 'u', credential: 'p' }],
    [{ url: 'turn:a:0', username: 'u', credential: 'p' }],
    [{ url: 'turn:a?transport=sctp', username: 'u', credential: 'p' }],
    [{ url: 'turn:a b', username: 'u', credential: 'p' }],
    [{ url: 'turn:u@a', username: 'u', credential: 'p' }],
    [{ url: 'turn:a', credential_type: 'hmac' }],
    [{ url: 'turn:a', credential_type: 'rest_api' }],
    [{ url: 'turn:a', credential_type: 'rest_api', credential_url: 'http://a.example/' }],
    [{ url: 'turn:a', credential_type: 'rest_api', credential_url: 'file:///etc/passwd' }],
    [{ url: 'turn:a', credential_type: 'oauth', username: 'u', credential: 'p' }],
    [{ url: 'turn:a', username: 'u', credential: 'p', credential_url: 'https://a/' }],
    [{ url: 'turn:a', username: 'u', credential: 'p', pasword: 'p' }],
    [{ url: 'turn:a', username: 'u\n', credential: 'p' }],
  ],
};

test('accepts valid values and rejects others', () => {
  for (const [key, values] of Object.entries(good)) {
    for (const value of values)
      assert.ok(isConfigKey(key) && 'value' in checkValue(key, value), `${key} ${JSON.stringify(value)}`);
  }
  for (const [key, values] of Object.entries(bad)) {
    for (const value of values)
      assert.ok(isConfigKey(key) && 'problem' in checkValue(key, value), `${key} ${JSON.stringify(value)}`);
  }
});

test('fills in the members of a TURN server and freezes the value', () => {
  const checked = checkValue('turn_servers', [{ url: 'turn:a', username: 'u', credential: 'p' }]);
  assert.ok('value' in checked);
  assert.deepEqual(checked.value, [
    { url: 'turn:a', username: 'u', credential: 'p', credential_type: 'static', credential_url: '' },
  ]);
  assert.ok(Array.isArray(checked.value) && Object.isFrozen(checked.value) && Object.isFrozen(checked.value[0]));
});

test('names the faulty list item', () => {
  assert.deepEqual(checkValue('bootstrap', ['a:1', 2]), { problem: 'at 1 must be string' });
  assert.deepEqual(checkValue('bootstrap', ['a:1', 'b c']), {
    problem: 'at 1 must be a host or host:port with a port of 1 to 65535; "<node aid>@" may precede it',
  });
  assert.deepEqual(checkValue('turn_servers', [{ url: 'turn:a', x: 1 }]), {
    problem: 'at 0 has the unknown member "x"',
  });
  assert.deepEqual(checkValue('log_level', 'trace'), { problem: 'must be one of: debug, info, warn, error' });
});

test('never repeats a value in a problem, and never throws', () => {
  const secret = 'hunter2-hunter2';
  const value = fc.oneof(
    fc.constant(` ${secret}`),
    fc.constant([secret]),
    fc.constant([{ url: `turn:${secret} `, username: secret, credential: secret, credential_url: secret }]),
    fc.constant([{ url: 'turn:a', credential_type: secret, credential: 5 }]),
    fc.anything({ maxDepth: 3 }),
  );
  fc.assert(
    fc.property(fc.constantFrom(...CONFIG_KEYS), value, (key, raw) => {
      const checked = checkValue(key, raw);
      if ('problem' in checked) assert.ok(!checked.problem.includes(secret), checked.problem);
    }),
    { seed: 5, numRuns: 1000 },
  );
});

test('reads text by the type of the key', () => {
  const cases: [ConfigKey, string, unknown][] = [
    ['mdns', 'true', true],
    ['mdns', ' FALSE ', false],
    ['mdns', '1', true],
    ['mdns', '0', false],
    ['mdns', 'yes', 'yes'],
    ['mdns', 'constructor', 'constructor'],
    ['min_observed_peers', '5', 5],
    ['min_observed_peers', '5x', '5x'],
    ['bootstrap', 'a:1, b:2', ['a:1', 'b:2']],
    ['bootstrap', '', []],
    ['api_token', '12345678', '12345678'],
    ['log_level', 'debug', 'debug'],
    ['turn_servers', '[{"url":"turn:a"}]', [{ url: 'turn:a' }]],
    ['turn_servers', 'turn:a', 'turn:a'],
  ];
  for (const [key, text, value] of cases) assert.deepEqual(parseValueText(key, text), value, `${key} ${text}`);
});
