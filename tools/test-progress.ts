/**
 * An additional reporter for `node --test`: at intervals, the finished files and tests, and an estimate of the remaining
 * time. `TEST_FILES` is the number of files.
 */

/** Interval between lines, milliseconds. */
const EVERY_MS = 30_000;

interface Event {
  readonly type: string;
  readonly data?: { readonly file?: string; readonly nesting?: number };
}

/** One line about the state of a run. @param total number of files; 0 if unknown */
export function progressLine(
  { files, passed, failed }: { readonly files: number; readonly passed: number; readonly failed: number },
  total: number,
  elapsedMs: number,
): string {
  const counts = `${files}${total === 0 ? '' : ` of ${total}`} files, ${passed} tests passed, ${failed} failed`;
  if (total === 0 || files === 0 || files >= total) return counts;
  const minutes = Math.ceil(((elapsedMs / files) * (total - files)) / 60_000);
  return `${counts}, about ${minutes} min left`;
}

export default async function* testProgress(events: AsyncIterable<Event>): AsyncGenerator<string> {
  const total = Number(process.env['TEST_FILES'] ?? 0);
  const started = performance.now();
  const state = { files: 0, passed: 0, failed: 0 };
  let shown = started;
  for await (const { type, data } of events) {
    if (type === 'test:pass') state.passed++;
    if (type === 'test:fail') state.failed++;
    if (type !== 'test:summary' || data?.file === undefined) continue;
    state.files++;
    const now = performance.now();
    if (now - shown < EVERY_MS && state.files !== total) continue;
    shown = now;
    yield `\n[${progressLine(state, total, now - started)}]\n`;
  }
}
