/** How many files and sockets this process may have open. */

/** What is taken where the system has no such limit, or does not tell. */
const NO_LIMIT = 65_536;

export function descriptorLimit(): number {
  const { report } = process;
  const excluded: unknown = Reflect.get(report, 'excludeNetwork');
  // Else the names of all hosts that this process is connected with would be looked up meanwhile.
  Reflect.set(report, 'excludeNetwork', true);
  const contents: object = report.getReport();
  Reflect.set(report, 'excludeNetwork', excluded);
  const limits: unknown = Reflect.get(contents, 'userLimits');
  const openFiles: unknown = typeof limits === 'object' && limits !== null ? Reflect.get(limits, 'open_files') : null;
  const soft: unknown = typeof openFiles === 'object' && openFiles !== null ? Reflect.get(openFiles, 'soft') : null;
  return typeof soft === 'number' ? Math.min(soft, NO_LIMIT) : NO_LIMIT;
}
