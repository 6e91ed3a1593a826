/** How many files and sockets this process may have open. */
import { memberOf } from './json.ts';

/** What is taken where the system has no such limit, or does not tell. */
const NO_LIMIT = 65_536;

export function descriptorLimit(): number {
  const { report } = process;
  const excluded: unknown = Reflect.get(report, 'excludeNetwork');
  // Else the names of all hosts that this process is connected with would be looked up meanwhile.
  Reflect.set(report, 'excludeNetwork', true);
  const contents: object = report.getReport();
  Reflect.set(report, 'excludeNetwork', excluded);
  const soft = memberOf(contents, 'userLimits', 'open_files', 'soft');
  return typeof soft === 'number' ? Math.min(soft, NO_LIMIT) : NO_LIMIT;
}
