/** An additional reporter for `node --test` that lists skipped tests by reason. */

interface Event {
  readonly type: string;
  readonly data?: { readonly name?: string; readonly skip?: string | boolean };
}

/** The lines of the summary. None without skipped tests. */
export default async function* skippedTests(events: AsyncIterable<Event>): AsyncGenerator<string> {
  const byReason = new Map<string, string[]>();
  for await (const { type, data } of events) {
    const { name = '', skip = false } = data ?? {};
    if (type !== 'test:pass' || skip === false) continue;
    const reason = typeof skip === 'string' && skip !== '' ? skip : 'no reason given';
    byReason.set(reason, [...(byReason.get(reason) ?? []), name]);
  }
  if (byReason.size === 0) return;
  yield '\nSkipped (.ci/run installs what a bare Debian lacks):\n';
  for (const [reason, names] of byReason) yield `  ${reason}\n${names.map((name) => `    - ${name}\n`).join('')}`;
}
