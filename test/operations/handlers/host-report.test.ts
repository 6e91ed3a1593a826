import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { availableParallelism, networkInterfaces, totalmem } from 'node:os';
import { test } from 'node:test';
import { VERSION } from '../../../src/foundation/version.ts';
import { hostReport } from '../../../src/operations/handlers/host-report.ts';

test('the report contains the program, the machine and the listening addresses of the daemon', () => {
  const bound = { api_addr: '127.0.0.1:2121' };
  const report = hostReport(bound);
  const { version, node, platform, arch, pid, cpus, memory_total_bytes } = report;
  assert.deepEqual(
    { version, node, platform, arch, pid, cpus, memory_total_bytes },
    {
      version: VERSION,
      node: process.version,
      platform: process.platform,
      arch: process.arch,
      pid: process.pid,
      cpus: availableParallelism(),
      memory_total_bytes: totalmem(),
    },
  );
  assert.deepEqual(report['bound'], bound);
  assert.match(String(report['os_release']), /\d/);
});

test('memory and uptime are figures of this process, in whole numbers', () => {
  const report = hostReport({});
  for (const name of ['process_rss_bytes', 'process_heap_bytes', 'process_external_bytes', 'memory_free_bytes'])
    assert.ok(Number.isInteger(report[name]) && Number(report[name]) > 0, name);
  assert.ok(Number(report['process_heap_bytes']) < Number(report['process_rss_bytes']));
  assert.ok(Number.isInteger(report['uptime_s']) && Number(report['uptime_s']) <= process.uptime());
});

test('every address of every interface is listed, without more than a diagnosis needs', () => {
  const found = Object.entries(networkInterfaces()).flatMap(([name, all = []]) =>
    all.map(({ address, family, internal }) => ({ name, address, family, internal })),
  );
  assert.deepEqual(hostReport({})['interfaces'], found);
  assert.ok(!JSON.stringify(hostReport({})).includes('"mac"'));
});

test('handles that keep the process running are counted by type', async () => {
  const counted = (): number => {
    const { resources } = hostReport({});
    assert.ok(typeof resources === 'object' && resources !== null);
    return Number(Reflect.get(resources, 'TCPServerWrap') ?? 0);
  };
  const before = counted();
  const servers = [createServer(), createServer()];
  for (const server of servers) await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  assert.equal(counted(), before + 2);
  for (const server of servers) await new Promise((resolve) => server.close(resolve));
});
