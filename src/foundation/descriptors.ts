/** How many files and sockets this process may have open. */
import { readFileSync } from 'node:fs';
import { memberOf } from './json.ts';

/** What is taken where the system has no such limit, or does not tell. */
const NO_LIMIT = 65_536;

/** @param file where Linux tells the limits of this process; elsewhere it is not there, and a report of Node tells them */
export function descriptorLimit(file = '/proc/self/limits'): number {
  const soft = limitIn(file) ?? limitInReport();
  return typeof soft === 'number' ? Math.min(soft, NO_LIMIT) : NO_LIMIT;
}

/** Undefined where nobody tells. */
function limitIn(file: string): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+) /m.exec(readFileSync(file, 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

/** It takes some milliseconds to make. */
function limitInReport(): unknown {
  const { report } = process;
  const excluded: unknown = Reflect.get(report, 'excludeNetwork');
  // Else the names of all hosts that this process is connected with would be looked up meanwhile.
  Reflect.set(report, 'excludeNetwork', true);
  const contents: object = report.getReport();
  Reflect.set(report, 'excludeNetwork', excluded);
  return memberOf(contents, 'userLimits', 'open_files', 'soft');
}
