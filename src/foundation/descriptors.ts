/** The limit of open files and sockets of this process. */
import { readFileSync } from 'node:fs';
import { memberOf } from './json.ts';

/** Used if the system has no limit or does not report it. */
const NO_LIMIT = 65_536;

/** @param file in which Linux lists the limits of this process; on other systems the limit comes from a Node report */
export function descriptorLimit(file = '/proc/self/limits'): number {
  const soft = limitIn(file) ?? limitInReport();
  return typeof soft === 'number' ? Math.min(soft, NO_LIMIT) : NO_LIMIT;
}

/** Undefined if the file does not contain the limit. */
function limitIn(file: string): number | undefined {
  try {
    const [, soft] = /^Max open files +(\d+) /m.exec(readFileSync(file, 'utf8')) ?? [];
    return soft === undefined ? undefined : Number(soft);
  } catch {
    return undefined;
  }
}

/** The report takes a few milliseconds. */
function limitInReport(): unknown {
  const { report } = process;
  const excluded: unknown = Reflect.get(report, 'excludeNetwork');
  // Otherwise Node would resolve the names of all connected hosts.
  Reflect.set(report, 'excludeNetwork', true);
  const contents: object = report.getReport();
  Reflect.set(report, 'excludeNetwork', excluded);
  return memberOf(contents, 'userLimits', 'open_files', 'soft');
}
