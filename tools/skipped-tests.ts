/** A reporter for `node --test` beside its own: names the tests that were skipped, by what they lack. */

interface Event {
  readonly type: string;
  readonly data?: { readonly name?: string; readonly skip?: string | boolean };
}

/** The lines of the summary; none where nothing was skipped. */
export default async function* skippedTests(events: AsyncIterable<Event>): AsyncGenerator<string> {
  const byReason = new Map<string, string[]>();
  for await (const { type, data } of events) {
    const { name = '', skip = false } = data ?? {};
    if (type !== 'test:pass' || skip === false) continue;
    const reason = typeof skip === 'string' && skip !== '' ? skip : 'for no reason that is said';
    byReason.set(reason, [...(byReason.get(reason) ?? []), name]);
  }
  if (byReason.size === 0) return;
  yield '\nSkipped (.ci/run installs what a bare Debian lacks):\n';
  for (const [reason, names] of byReason) yield `  ${reason}\n${names.map((name) => `    - ${name}\n`).join('')}`;
}
