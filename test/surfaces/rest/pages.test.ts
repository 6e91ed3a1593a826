import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../../src/foundation/clock.ts';
import { metricsText, ProcessMetrics } from '../../../src/surfaces/rest/metrics.ts';
import { eventually } from '../../support/eventually.ts';
import { startWorld } from './support.ts';

test('/docs and its files are served locally, with a strict policy', async (t) => {
  const world = await startWorld(t);
  const page = await world.request('GET', '/docs');
  assert.equal(page.status, 200);
  assert.equal(page.headers['content-type'], 'text/html; charset=utf-8');
  const policy = String(page.headers['content-security-policy']);
  assert.match(policy, /default-src 'none'; script-src 'self';/);
  assert.ok(!policy.includes('unsafe-eval') && !/script-src[^;]*unsafe-inline/.test(policy));
  const loaded = [...page.text.matchAll(/(?:src|href)="(\/[^"]+)"/g)].map(([, path]) => path ?? '');
  assert.equal(loaded.length, 3);
  assert.ok(!/(?:src|href)="(?:https?:)?\/\//.test(page.text));
  for (const path of loaded) {
    const file = await world.request('GET', path);
    assert.equal(file.status, 200, path);
    assert.match(String(file.headers['content-type']), path.endsWith('.css') ? /^text\/css/ : /^text\/javascript/);
    assert.ok(file.text.length > 100);
    assert.equal((await world.request('HEAD', path)).text, '');
  }
});

test('/docs serves no other file', async (t) => {
  const world = await startWorld(t);
  const names = [
    'index.html',
    '..%2f..%2fpackage.json',
    '%2e%2e',
    'swagger-ui.js',
    '__proto__',
    'constructor',
    '%2fetc%2fpasswd',
  ];
  for (const name of names) assert.equal((await world.request('GET', `/docs/${name}`)).status, 404, name);
});

test('metrics text is escaped and valid', () => {
  const text = metricsText([
    {
      name: 'a_total',
      help: 'Back\\slash\nand line.',
      type: 'counter',
      samples: [{ value: 1, labels: { x: 'q"\\\n' } }],
    },
    { name: 'empty', help: 'Nothing.', type: 'gauge', samples: [] },
    { name: 'b', help: 'B.', type: 'gauge', samples: [{ value: Number.NaN }, { value: Number.POSITIVE_INFINITY }] },
  ]);
  assert.equal(
    text,
    '# HELP a_total Back\\\\slash\\nand line.\n# TYPE a_total counter\na_total{x="q\\"\\\\\\n"} 1\n' +
      '# HELP b B.\n# TYPE b gauge\nb NaN\nb +Inf\n',
  );
});

test('/metrics counts requests by operation and status, and shows other sources', async (t) => {
  const extra = () => [{ name: 'svcd_dht_peers', help: 'Peers.', type: 'gauge' as const, samples: [{ value: 7 }] }];
  const world = await startWorld(t, { metrics: [extra] });
  await world.request('GET', '/ping');
  await world.request('GET', '/ping');
  await world.request('GET', '/ping?n=x');
  await world.request('GET', '/nowhere/secret-name');
  await world.request('GET', '/ping', { headers: { host: 'evil.example' } });
  const { text, headers } = await world.request('GET', '/metrics');
  assert.equal(headers['content-type'], 'text/plain; version=0.0.4; charset=utf-8');
  const lines = text.split('\n');
  for (const line of [
    'svcd_http_requests_total{operation="ping",status="200"} 2',
    'svcd_http_requests_total{operation="ping",status="400"} 1',
    'svcd_http_requests_total{operation="none",status="404"} 1',
    'svcd_http_requests_total{operation="none",status="403"} 1',
    'svcd_http_request_duration_seconds_bucket{le="+Inf"} 5',
    'svcd_http_request_duration_seconds_count 5',
    'svcd_http_connections 1',
    'svcd_dht_peers 7',
  ])
    assert.ok(lines.includes(line), line);
  assert.match(text, /^process_resident_memory_bytes \d+$/m);
  assert.ok(!text.includes('secret-name'));
  const buckets = lines.filter((line) => line.includes('_bucket')).map((line) => Number(line.split(' ')[1]));
  assert.deepEqual(
    buckets,
    buckets.toSorted((a, b) => a - b),
  );
});

test('process metrics show memory, processor time and a blocked event loop', async (t) => {
  const metrics = new ProcessMetrics(systemClock);
  t.after(() => metrics.stop());
  const value = (name: string): number => {
    const found = metrics.collect().find((metric) => metric.name === name);
    return found?.samples[0]?.value ?? -1;
  };
  assert.ok(value('process_resident_memory_bytes') > 10_000_000);
  assert.ok(value('process_cpu_user_seconds_total') > 0);
  assert.ok(Math.abs(value('process_start_time_seconds') - Date.now() / 1000) < 600);
  // The monitor needs a sample before and after a block, and resets when it is read.
  const nothing = new Int32Array(new SharedArrayBuffer(4));
  let blocks = 0;
  await eventually('the blocked event loop shows', () => {
    Atomics.wait(nothing, 0, 0, 120);
    blocks++;
    return blocks % 5 === 0 && value('nodejs_eventloop_lag_max_seconds') > 0.05;
  });
});
