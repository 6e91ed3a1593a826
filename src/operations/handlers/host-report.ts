/** The content of `/debug/host`: process and machine. */
import { availableParallelism, freemem, release, totalmem } from 'node:os';
import { readInterfaces } from '../../foundation/interfaces.ts';
import { VERSION } from '../../foundation/version.ts';

/**
 * Current facts for diagnosis.
 * @param bound the listening addresses by purpose
 */
export function hostReport(bound: Readonly<Record<string, string>>): Readonly<Record<string, unknown>> {
  const interfaces = Object.entries(readInterfaces() ?? {}).flatMap(([name, addresses = []]) =>
    addresses.map(({ address, family, internal }) => ({ name, address, family, internal })),
  );
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  const { rss, heapUsed, external } = process.memoryUsage();
  return {
    version: VERSION,
    node: process.version,
    platform: process.platform,
    os_release: release(),
    arch: process.arch,
    pid: process.pid,
    uptime_s: Math.floor(process.uptime()),
    cpus: availableParallelism(),
    memory_total_bytes: totalmem(),
    memory_free_bytes: freemem(),
    process_rss_bytes: rss,
    process_heap_bytes: heapUsed,
    process_external_bytes: external,
    bound,
    interfaces,
    resources: counts,
  };
}
