/** The conformance suite of the protocol against real daemons: over HTTP, through the proxy, and as the node itself. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { conformance, type Verdict } from '../support/mcp-conformance.ts';
import { NOT_OFFERED, NOT_OVER_STDIO } from '../support/mcp-not-offered.ts';
import { StdioBridge } from '../support/stdio-bridge.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const NEWEST = '2026-07-28';

/** What every server has to do, by revision; these scenarios have checks that pass. */
const GENERIC: Readonly<Record<string, readonly string[]>> = {
  '2025-06-18': ['server-initialize', 'ping', 'tools-list'],
  '2025-11-25': ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'],
  [NEWEST]: ['server-stateless', 'tools-list', 'dns-rebinding-protection', 'http-header-validation', 'caching'],
};
/** Those of them that are about messages, whatever carries these. */
const OF_MESSAGES = new Set(['server-initialize', 'ping', 'tools-list', 'server-stateless']);

/** Sessions that a scenario begins at most. */
const SESSIONS = 2;

/** Every check that did not pass is one that is known not to, and for a reason. */
function assertOnly(known: Readonly<Record<string, string>>, { others }: Verdict, complete: boolean): void {
  const unexpected = [...others].filter(([check]) => known[check] === undefined);
  assert.deepEqual(unexpected, []);
  if (complete) assert.deepEqual([...others.keys()].sort(), Object.keys(known).sort(), 'a reason is out of date');
}

for (const [revision, generic] of Object.entries(GENERIC))
  test(`${revision} over HTTP: all of the suite but what is not offered`, async (t) => {
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

test('over stdio, through the proxy of a daemon: the scenarios about messages', async (t) => {
  await using daemon = await TestDaemon.start();
  await overStdio(t, () => ['bin/svcd', '--data-dir', daemon.dataDir, '--mcp-stdio']);
});

test('over stdio, as the node itself: the scenarios about messages', async (t) => {
  await overStdio(t, () => ['bin/svcd', '--data-dir', temporaryDirectory(t), '--listen', '127.0.0.1:0', '--mcp-stdio']);
});
