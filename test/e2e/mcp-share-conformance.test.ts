/**
 * The MCP conformance suite against a server directly and through svcd, as a friend uses it: the verdicts are equal.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { after, before, describe, type TestContext, test } from 'node:test';
import { svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { conformance } from '../support/mcp-conformance.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { ShareCommand } from '../support/share-command.ts';
import { FIXTURE } from '../support/shared-mcp.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const REVISIONS = ['2025-06-18', '2025-11-25', '2026-07-28'];

describe('conformance through svcd', () => {
  let home: TestDaemon;
  let friend: TestDaemon;
  let server: ChildProcess;
  let share: ShareCommand;
  let direct: string;
  let through: string;
  /** The same server over stdio. */
  let wrapped: string;
  let wrappedShare: ShareCommand;

  before(async () => {
    home = await TestDaemon.start();
    friend = await TestDaemon.start({ bootstrap: [home.dhtAddress] });
    await Promise.all([home, friend].map((daemon) => ready(daemon)));
    const port = await quietPort();
    server = spawn(process.execPath, [FIXTURE, String(port)], { stdio: 'inherit' });
    direct = `http://127.0.0.1:${port}/mcp`;
    await eventually('the server listens', async () => (await fetch(direct).catch(() => null)) !== null);
    const me = await friend.newAgent();
    const used = async (one: ShareCommand): Promise<string> =>
      svcOk(friend, '--quiet', 'mcp', 'use', (await one.reported()).aid);
    share = new ShareCommand(home, direct, '--name', 'http', '--allow', me);
    through = await used(share);
    wrappedShare = new ShareCommand(home, '--name', 'stdio', '--allow', me, '--', process.execPath, FIXTURE);
    wrapped = await used(wrappedShare);
  });
  after(async () => {
    await Promise.all([share, wrappedShare].map((one) => one.end('SIGTERM')));
    server.kill('SIGKILL');
    await Promise.all([home, friend].map((daemon) => daemon.stop()));
  });

  async function verdicts(t: TestContext, url: string, revision: string) {
    const { passed, others } = await conformance(url, revision, temporaryDirectory(t));
    const checks = [...others].map(([check, why]): [string, string] => [check, why.replace(/ .*/s, '')]);
    const failed: Record<string, string> = Object.fromEntries(checks);
    return { passed: Object.fromEntries(passed), others: failed };
  }

  for (const revision of REVISIONS)
    test(`${revision}: a server at an address, and one over stdio`, async (t) => {
      const [expected, carried, { others }] = await Promise.all([
        verdicts(t, direct, revision),
        verdicts(t, through, revision),
        verdicts(t, wrapped, revision),
      ]);
      assert.deepEqual(carried, expected);
      // Failures of the wrapped server are failures of the other server too. The wrapped server passes some more
      // checks, because a share adds ids to events.
      assert.deepEqual(
        Object.keys(others).filter((check) => expected.others[check] === undefined),
        [],
      );
    });
});
