/** Resources that a benchmark process has used, as the Linux kernel counts them. */
import { readFileSync } from 'node:fs';

const PAGE_BYTES = 4096;
const TICKS_PER_S = 100;

/** Resident memory, bytes. */
export function residentBytes(pid: number | undefined): number {
  return Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES;
}

/** CPU time in seconds, with a resolution of 10 ms. */
export function cpuSeconds(pid: number | undefined): number {
  const [user = 0, system = 0] = readFileSync(`/proc/${pid}/stat`, 'utf8').split(' ').slice(13).map(Number);
  return (user + system) / TICKS_PER_S;
}
