import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import {
  CONFIG_KEYS,
  configSchema,
  environmentName,
  LIVE_KEYS,
  PATCHABLE_KEYS,
} from '../../../src/foundation/config/schema.ts';
import { checkValue } from '../../../src/foundation/config/values.ts';

test('every key has a meaning and a default that is possible', () => {
  const { properties } = configSchema();
  for (const key of CONFIG_KEYS) {
    const { description, default: value } = properties[key];
    assert.match(description, /^\S.*\.$/, key);
    assert.deepEqual(checkValue(key, value), { value });
  }
});

test('live keys can be patched, files_root has its own route, and keys that widen access cannot be patched', () => {
  assert.deepEqual([...LIVE_KEYS].sort(), [
    'api_token',
    'auto_publish',
    'disable_relay',
    'files_root',
    'log_format',
    'log_level',
    'name',
  ]);
  for (const key of LIVE_KEYS) assert.ok(PATCHABLE_KEYS.has(key) || key === 'files_root', key);
  assert.deepEqual(CONFIG_KEYS.filter((key) => !PATCHABLE_KEYS.has(key)).sort(), [
    'acme_directory',
    'entry_bytes_per_day',
    'entry_bytes_per_second',
    'entry_connections',
    'entry_proxies',
    'files_root',
    'help_others',
    'lan_tcp',
    'mdns',
    'network',
    'open_browser',
    'otlp_endpoint',
    'otlp_headers_file',
    'proxy',
    'proxy_command',
    'public_cert',
    'public_key',
    'public_names',
    'relay_bytes_per_day',
    'relay_bytes_per_second',
    'relay_sessions',
    'require_local_token',
    'share_traces',
    'tls_ca',
    'tls_cert',
    'tls_key',
    'tls_listen',
    'tls_sessions',
    'trace_percent',
    'traces',
  ]);
});

test('the JSON Schema is one, and describes the file', () => {
  const schema = configSchema();
  const ajv = new Ajv2020({ strict: true });
  for (const word of ['x-restart', 'x-environment']) ajv.addKeyword(word);
  const validate = ajv.compile(schema);
  assert.equal(validate({}), true);
  assert.equal(validate({ listen_addr: ':1', turn_servers: [{ url: 'turn:a' }] }), true);
  assert.equal(validate({ listen_adr: ':1' }), false);
  assert.equal(validate({ mdns: 'no' }), false);
  assert.deepEqual(Object.keys(schema.properties), CONFIG_KEYS);
  const { readOnly, 'x-restart': restart, 'x-environment': variable } = schema.properties.api_token;
  assert.deepEqual([readOnly, restart, variable], [false, false, environmentName('api_token')]);
  assert.deepEqual(JSON.parse(JSON.stringify(schema)), schema);
});
