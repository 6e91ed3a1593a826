import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { throwUsageErrors } from '../../src/daemon/args.ts';
import { mcpCommand } from '../../src/daemon/mcp-command.ts';
import { isMcpClient, type Machine, MCP_CLIENTS, serverIn } from '../../src/surfaces/mcp-hosts/hosts.ts';
import { newIdentity } from '../support/identities.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

const LAUNCH = { command: '/usr/bin/node', args: ['/opt/svcd', '--mcp-stdio'] };
const HUB_LAUNCH = { command: '/usr/bin/node', args: ['/opt/svc', 'mcp', 'hub', '--stdio'] };
const SERVER = { command: LAUNCH.command, args: LAUNCH.args };

function setUp(t: TestContext) {
  const machine: Machine = { platform: 'linux', home: temporaryDirectory(t), environment: {} };
  let output = '';
  const print = (text: string): void => {
    output += text;
  };
  const run = async (...args: string[]): Promise<string> => {
    output = '';
    const command = mcpCommand({ machine, launch: () => LAUNCH, hubLaunch: () => HUB_LAUNCH, print });
    await throwUsageErrors(command).parseAsync(args, { from: 'user' });
    return output;
  };
  return { machine, run, file: join(machine.home, '.cursor', 'mcp.json') };
}

test("print shows the entry to add, in the client's format", async (t) => {
  const { run } = setUp(t);
  assert.deepEqual(JSON.parse(await run('print')), { mcpServers: { svcd: SERVER } });
  assert.deepEqual(JSON.parse(await run('print', 'vscode')), { servers: { svcd: { type: 'stdio', ...SERVER } } });
});

test('add creates the file, and changes nothing the second time', async (t) => {
  const { run, machine } = setUp(t);
  for (const [name, client] of Object.entries(MCP_CLIENTS)) {
    assert.match(await run('add', name), /^Added svcd to .*\nRestart /);
    assert.ok(isMcpClient(name));
    const text = readFileSync(client.file(machine), 'utf8');
    assert.deepEqual(JSON.parse(JSON.stringify(serverIn(name, text, 'svcd'))).args, LAUNCH.args);
    assert.match(await run('add', name), /already has it/);
    assert.equal(readFileSync(client.file(machine), 'utf8'), text);
  }
});

test('--channel passes items on to sessions of Claude Code, and names the command that starts one', async (t) => {
  const { run, machine } = setUp(t);
  const { aid } = newIdentity();
  assert.match(
    await run('add', '--channel', '--permissions', aid, 'claude-code'),
    /claude --dangerously-load-development-channels server:svcd\n$/,
  );
  const entry = (): { args: string[] } => {
    const { mcpServers } = JSON.parse(readFileSync(MCP_CLIENTS['claude-code'].file(machine), 'utf8'));
    return mcpServers.svcd;
  };
  assert.deepEqual(entry().args, [...LAUNCH.args, '--mcp-channel', '--mcp-permissions', aid]);
  // Without the option the entry is replaced.
  await run('add', 'claude-code');
  assert.deepEqual(entry().args, LAUNCH.args);
  await assert.rejects(run('add', '--channel', 'cursor'), /Only claude-code has channels/);
  await assert.rejects(run('add', '--permissions', 'phone', 'claude-code'), /Give the AID/);
  writeFileSync(MCP_CLIENTS['claude-code'].file(machine), '{');
  await assert.rejects(
    run('add', '--permissions', aid, 'claude-code'),
    new RegExp(`"svcd mcp print --channel --permissions ${aid} claude-code" prints the entry`),
  );
});

test('--hub adds the hub next to svcd', async (t) => {
  const { run, file } = setUp(t);
  await run('add', 'cursor');
  assert.match(await run('add', '--hub', 'cursor'), /^Added svcd-hub to /);
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')).mcpServers, { svcd: SERVER, 'svcd-hub': HUB_LAUNCH });
  assert.deepEqual(JSON.parse(await run('print', '--hub')), { mcpServers: { 'svcd-hub': HUB_LAUNCH } });
});

test('add keeps other entries, symbolic links and the previous file', async (t) => {
  const { run, file, machine } = setUp(t);
  const before = '{"theme": "dark", "mcpServers": {"other": {"command": "x"}}}';
  const real = join(machine.home, 'real.json');
  mkdirSync(dirname(file));
  writeFileSync(real, before);
  symlinkSync(real, file);
  await run('add', 'cursor');
  assert.deepEqual(JSON.parse(readFileSync(real, 'utf8')), {
    theme: 'dark',
    mcpServers: { other: { command: 'x' }, svcd: SERVER },
  });
  assert.equal(readFileSync(`${real}.before-svcd`, 'utf8'), before);
});

test('every previous file is kept under a separate name', async (t) => {
  const { run, file } = setUp(t);
  mkdirSync(dirname(file));
  const versions = ['{}', '{"theme":"dark"}', '{"theme":"light"}'];
  const names = ['before-svcd', 'before-svcd-2', 'before-svcd-3'].map((name) => `${file}.${name}`);
  for (const [i, text] of versions.entries()) {
    writeFileSync(file, text);
    assert.ok((await run('add', 'cursor')).includes(`; the previous file is ${names[i]}.`));
  }
  assert.deepEqual(
    names.map((name) => readFileSync(name, 'utf8')),
    versions,
  );
});

test('a dry run writes nothing', async (t) => {
  const { run, file } = setUp(t);
  assert.match(await run('add', 'cursor', '--dry-run'), /^Would write .*mcp\.json:\n\{/);
  assert.equal(existsSync(file), false);
});

test('comments in a file are kept', async (t) => {
  const { run, file } = setUp(t);
  mkdirSync(dirname(file));
  writeFileSync(file, '{ // mine\n}');
  await run('add', 'cursor');
  assert.match(readFileSync(file, 'utf8'), /"svcd"[^]* \/\/ mine\n/);
});

test('a file with another structure is not changed', async (t) => {
  const { run, file } = setUp(t);
  mkdirSync(dirname(file));
  for (const text of ['{ mine }', '[]', '{"mcpServers": []}']) {
    writeFileSync(file, text);
    await assert.rejects(run('add', 'cursor'), { code: 'config_invalid', message: /svcd mcp print cursor/ });
    assert.equal(readFileSync(file, 'utf8'), text);
  }
});

test('the file locations on each system', () => {
  const windows: Machine = { platform: 'win32', home: 'C:\\U', environment: { APPDATA: 'C:\\U\\R' } };
  const mac: Machine = { platform: 'darwin', home: '/Users/u', environment: {} };
  assert.equal(MCP_CLIENTS['claude-desktop'].file(windows), 'C:\\U\\R\\Claude\\claude_desktop_config.json');
  assert.equal(MCP_CLIENTS.vscode.file(mac), '/Users/u/Library/Application Support/Code/User/mcp.json');
  assert.equal(MCP_CLIENTS.windsurf.file(mac), '/Users/u/.codeium/windsurf/mcp_config.json');
});

test('remove deletes the entry of every client, keeps the others, and changes nothing the second time', async (t) => {
  const { run, machine } = setUp(t);
  for (const [name, client] of Object.entries(MCP_CLIENTS)) {
    assert.ok(isMcpClient(name));
    const text = () => readFileSync(client.file(machine), 'utf8');
    await run('add', '--hub', name);
    const before = text();
    await run('add', name);
    assert.match(await run('remove', name, '--dry-run'), /^Would remove svcd from /);
    assert.notEqual(serverIn(name, text(), 'svcd'), undefined);
    assert.match(await run('remove', name), /^Removed svcd from .*; the previous file is .*\.before-svcd/);
    assert.equal(text(), before);
    assert.match(await run('remove', name), /has no svcd\./);
    assert.match(await run('remove', '--hub', name), /^Removed svcd-hub from /);
  }
});

test('remove --name deletes only entries that start svc or svcd', async (t) => {
  const { run, file } = setUp(t);
  mkdirSync(dirname(file));
  const notes = { command: 'node', args: ['/opt/svc', 'mcp', 'use', 'aid1x', '--stdio'] };
  writeFileSync(file, JSON.stringify({ mcpServers: { notes, other: { command: 'x', args: [] } } }));
  await assert.rejects(run('remove', 'cursor', '--name', 'other'), { code: 'invalid_request' });
  assert.match(await run('remove', 'cursor', '--name', 'notes'), /^Removed notes /);
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), { mcpServers: { other: { command: 'x', args: [] } } });
});

test('the same server under another name is updated there', async (t) => {
  const { run, file } = setUp(t);
  mkdirSync(dirname(file));
  const mine = { command: '/old/node', args: ['/old/bin/svcd', '--mcp-stdio'], note: 1 };
  const elsewhere = { ...mine, env: { SVCD_DATA_DIR: '/srv/second' } };
  writeFileSync(file, JSON.stringify({ mcpServers: { elsewhere, mine } }));
  assert.match(await run('add', 'cursor'), /^Added mine to /);
  assert.match(await run('add', 'cursor'), /already has it as mine\.$/m);
  assert.deepEqual(JSON.parse(readFileSync(file, 'utf8')), {
    mcpServers: { elsewhere, mine: { ...SERVER, note: 1 } },
  });
});
