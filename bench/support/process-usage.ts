/** Resources that a benchmark process has used, as the Linux kernel counts them. */
import { readdirSync, readFileSync } from 'node:fs';

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

/** CPU time of all threads in milliseconds, with a resolution of nanoseconds. Threads that ended do not count. */
export function threadMs(pid: number | undefined): number {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return threads.reduce((sum, ns) => sum + ns, 0) / 1e6;
}

/** How often the threads of a process were woken. */
export function wakeUps(pid: number | undefined): number {
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8');
    return sum + Number(/^voluntary_ctxt_switches:\s*(\d+)/m.exec(status)?.[1] ?? 0);
  }, 0);
}
