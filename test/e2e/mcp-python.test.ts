/**
 * The official Python client of MCP, over stdio and over HTTP: results through two daemons equal the direct results.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { PYTHON } from '../../tools/python-environment.ts';
import { svcOk } from '../support/cli.ts';
import { TestDaemon } from '../support/daemon.ts';
import { eventually } from '../support/eventually.ts';
import { assertSame, type Verdicts, verdictsOf } from '../support/judges.ts';
import { needsPython } from '../support/needs.ts';
import { ready } from '../support/network.ts';
import { quietPort } from '../support/programs.ts';
import { ShareCommand } from '../support/share-command.ts';
import { FIXTURE, LEGACY, MODERN } from '../support/shared-mcp.ts';

const CLIENT = join('test', 'python', 'mcp_client.py');

describe('the Python client of MCP', { skip: needsPython(), concurrency: 2 }, () => {
  let home: TestDaemon;
  let friend: TestDaemon;
  let server: ChildProcess;
  let share: ShareCommand;
  let direct: string;
  let origin: string;
  let shared: string;

  before(async () => {
    const port = await quietPort();
    server = spawn(process.execPath, [FIXTURE, String(port)], { stdio: 'ignore' });
    direct = `http://127.0.0.1:${port}`;
    home = await TestDaemon.start();
    friend = await TestDaemon.start({ bootstrap: [home.dhtAddress] });
    await Promise.all([ready(home), ready(friend)]);
    await eventually('the server listens', async () => (await fetch(`${direct}/ping`).catch(() => null)) !== null);
    const me = await friend.newAgent();
    const aid = await home.newAgent(direct);
    await home.call('POST', `/agents/${aid}/publish`);
    origin = await svcOk(friend, '--quiet', 'origin', 'open', aid);
    share = new ShareCommand(home, '--name', 'notes', '--allow', me, '--', process.execPath, FIXTURE);
    shared = (await share.reported()).aid;
  });

  after(async () => {
    await share.end('SIGTERM');
    await Promise.all([home, friend].map((daemon) => daemon.stop()));
    server.kill('SIGKILL');
  });

  function overHttp(revision: string, at: string): Promise<Verdicts> {
    return verdictsOf([PYTHON, CLIENT, revision, `${at}/mcp`]);
  }

  function overStdio(revision: string, ...args: readonly string[]): Promise<Verdicts> {
    return verdictsOf([PYTHON, CLIENT, revision, '--', process.execPath, ...args], { SVC_API: friend.api });
  }

  for (const revision of [LEGACY, MODERN]) {
    test(`${revision}: at a local address`, async () => {
      assertSame(await overHttp(revision, origin), await overHttp(revision, direct));
    });

    test(`${revision}: over stdio, with svc mcp use`, async () => {
      const through = await overStdio(revision, 'bin/svc', 'mcp', 'use', shared, '--stdio');
      assertSame(through, await overStdio(revision, FIXTURE));
    });
  }
});
