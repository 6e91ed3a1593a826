/** The MCP conformance suite against real daemons: over HTTP, through the proxy, and with svcd as the node itself. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { conformance, type Verdict } from '../support/mcp-conformance.ts';
import { NOT_OFFERED, NOT_OVER_STDIO } from '../support/mcp-not-offered.ts';
import { StdioBridge } from '../support/stdio-bridge.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const NEWEST = '2026-07-28';

/** Requirements on every server, by revision. Checks of these scenarios pass. */
const GENERIC: Readonly<Record<string, readonly string[]>> = {
  '2025-06-18': ['server-initialize', 'ping', 'tools-list'],
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  [NEWEST]: ['server-stateless', 'tools-list', 'dns-rebinding-protection', 'http-header-validation', 'caching'],
};
/** The scenarios among them that depend only on messages, not on the transport. */
const OF_MESSAGES = new Set(['server-initialize', 'ping', 'tools-list', 'server-stateless']);

/** Most sessions that a scenario opens. */
const SESSIONS = 2;

/** Every check that did not pass must be known to fail, with a reason. */
function assertOnly(known: Readonly<Record<string, string>>, { others }: Verdict, complete: boolean): void {
  const unexpected = [...others].filter(([check]) => known[check] === undefined);
  assert.deepEqual(unexpected, []);
  if (complete) assert.deepEqual([...others.keys()].sort(), Object.keys(known).sort(), 'a reason is out of date');
}

for (const [revision, generic] of Object.entries(GENERIC))
  test(`${revision} over HTTP: the whole suite except features that are not offered`, async (t) => {
    await using daemon = await TestDaemon.start();
    const verdict = await conformance(`${daemon.api}/mcp/`, revision, temporaryDirectory(t));
    assertOnly(NOT_OFFERED[revision] ?? {}, verdict, true);
    for (const scenario of generic) assert.ok((verdict.passed.get(scenario) ?? 0) > 0, scenario);
  });

async function overStdio(t: TestContext, args: () => readonly string[]): Promise<void> {
  await using bridge = await StdioBridge.start(args);
  for (const [revision, generic] of Object.entries(GENERIC)) {
    for (const scenario of generic.filter((name) => OF_MESSAGES.has(name))) {
      await bridge.prepare(SESSIONS);
      const verdict = await conformance(bridge.url, revision, temporaryDirectory(t), scenario);
      assertOnly({ ...NOT_OFFERED[revision], ...NOT_OVER_STDIO }, verdict, false);
      assert.ok((verdict.passed.get(scenario) ?? 0) > 0, `${revision} ${scenario}`);
    }
  }
}

test('over stdio, through the proxy of a daemon: the message scenarios', async (t) => {
  await using daemon = await TestDaemon.start();
  await overStdio(t, () => ['bin/svcd', '--data-dir', daemon.dataDir, '--mcp-stdio']);
});

test('over stdio, with svcd as the node itself: the message scenarios', async (t) => {
  await overStdio(t, () => ['bin/svcd', '--data-dir', temporaryDirectory(t), '--listen', '127.0.0.1:0', '--mcp-stdio']);
});
