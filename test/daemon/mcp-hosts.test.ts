import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { mcpHosts } from '../../src/daemon/mcp-command.ts';
import { type Machine, MCP_CLIENTS, svcdEntry, withServer } from '../../src/surfaces/mcp-hosts/hosts.ts';
import { temporaryDirectory } from '../support/temporary-directory.ts';

test('a host is missing, present, configured, or unreadable', (t) => {
  const machine: Machine = { platform: 'linux', home: temporaryDirectory(t), environment: {} };
  const states = () =>
    Object.fromEntries(mcpHosts(machine).map(({ name, isHere, hasSvcd }) => [name, [isHere, hasSvcd]]));
  assert.deepEqual(states(), Object.fromEntries(Object.keys(MCP_CLIENTS).map((name) => [name, [false, false]])));

  const launch = { command: 'node', args: ['svcd', '--mcp-stdio'] };
  const files: Readonly<Record<string, string>> = {
    'claude-code': '{"mcpServers": {"other": {"command": "x"}}}',
    cursor: withServer('cursor', '{"theme": "dark"}', svcdEntry('cursor', launch)),
    vscode: withServer('vscode', '', svcdEntry('vscode', launch)),
    windsurf: '// a comment\n{',
    'claude-desktop': '',
    codex: withServer('codex', 'model = "x"\n', svcdEntry('codex', launch)),
  };
  for (const { name, file } of mcpHosts(machine)) {
    const text = files[name];
    if (text === undefined) continue;
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
  mkdirSync(join(machine.home, '.gemini'));
  assert.deepEqual(states(), {
    'claude-code': [true, false],
    'claude-desktop': [true, false],
    cursor: [true, true],
    vscode: [true, true],
    windsurf: [true, null],
    'gemini-cli': [true, false],
    codex: [true, true],
  });
});
