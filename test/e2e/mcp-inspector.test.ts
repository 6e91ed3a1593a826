/** The official MCP Inspector against real daemons: over HTTP, through the proxy, and with svcd as the node itself. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { TestDaemon } from '../support/daemon.ts';
import { type Output, run } from '../support/programs.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

/** The inspector's exit code when a tool returns an error. */
const TOOL_ERROR = 5;

/** @param target the address, or the command with its options */
async function inspect(t: TestContext, target: readonly string[], options: readonly string[]): Promise<Output> {
  // It must not use the catalog and settings of the user who runs the tests.
  const home = temporaryDirectory(t);
  const separator = target.indexOf('--');
  const [before, command] = separator < 0 ? [target, []] : [target.slice(0, separator), target.slice(separator)];
  const args = ['--cli', ...before, '--format', 'json', ...options, ...command];
  return run(process.execPath, ['node_modules/.bin/mcp-inspector', ...args], { env: { HOME: home } });
}

async function inspectTools(t: TestContext, target: readonly string[]): Promise<void> {
  for (const era of ['modern', 'legacy']) {
    const call = (...options: string[]): Promise<Output> => inspect(t, target, ['--protocol-era', era, ...options]);
    const listed = await call('--method', 'tools/list', '--strict', '--quiet');
    assert.deepEqual({ code: listed.code, stderr: listed.stderr }, { code: 0, stderr: '' }, 'the schemas are portable');
    const { result } = JSON.parse(listed.stdout) as { result: { tools: { name: string }[] } };
    assert.ok(result.tools.some(({ name }) => name === 'svc_fetch'));
    const status = await call('--method', 'tools/call', '--tool-name', 'svc_status', '--quiet');
    assert.equal(status.code, 0, status.stderr);
    assert.match(status.stdout, /"structuredContent":\{"node_aid":"aid1/);
    const refused = await call('--method', 'tools/call', '--tool-name', 'svc_resolve', '--tool-arg', 'aid=aid1x');
    assert.equal(refused.code, TOOL_ERROR, refused.stderr);
    assert.match(refused.stdout, /Error bad_aid: /);
  }
}

function stdio(dataDir: string): readonly string[] {
  const command = [process.execPath, 'bin/svcd', '--data-dir', dataDir, '--listen', '127.0.0.1:0', '--mcp-stdio'];
  return ['-e', 'SVCD_MDNS=false', '--', ...command];
}

test('over HTTP', async (t) => {
  await using daemon = await TestDaemon.start();
  await inspectTools(t, [`${daemon.api}/mcp/`, '--transport', 'http']);
});

test('over stdio, through the proxy of a daemon', async (t) => {
  await using daemon = await TestDaemon.start();
  await inspectTools(t, stdio(daemon.dataDir));
});

test('over stdio, with svcd as the node itself', async (t) => {
  await inspectTools(t, stdio(temporaryDirectory(t)));
});
