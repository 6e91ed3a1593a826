import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  type ClientLaunch,
  isMcpClient,
  type Machine,
  MCP_CLIENTS,
  type McpClientName,
  serverIn,
  svcdEntry,
  withServer,
} from '../../../src/surfaces/mcp-hosts/hosts.ts';

const LAUNCH = { command: '/usr/bin/node', args: ['/opt/svcd', '--mcp-stdio'] };
const ENTRY = { command: LAUNCH.command, args: LAUNCH.args };

function withSvcd(client: McpClientName, text: string, launch: ClientLaunch): string {
  return withServer(client, text, svcdEntry(client, launch));
}

const LINUX: Machine = { platform: 'linux', home: '/home/u', environment: {} };
const MAC: Machine = { platform: 'darwin', home: '/Users/u', environment: {} };
const WINDOWS: Machine = { platform: 'win32', home: 'C:\\U', environment: {} };

test('every client has a configuration file on every system', () => {
  const places = Object.entries(MCP_CLIENTS).map(([name, { file }]) => [
    name,
    ...[LINUX, MAC, WINDOWS].map((machine) => file(machine)),
  ]);
  const roaming = 'C:\\U\\AppData\\Roaming';
  const support = '/Users/u/Library/Application Support';
  assert.deepEqual(places, [
    ['claude-code', '/home/u/.claude.json', '/Users/u/.claude.json', 'C:\\U\\.claude.json'],
    [
      'claude-desktop',
      '/home/u/.config/Claude/claude_desktop_config.json',
      `${support}/Claude/claude_desktop_config.json`,
      `${roaming}\\Claude\\claude_desktop_config.json`,
    ],
    ['cursor', '/home/u/.cursor/mcp.json', '/Users/u/.cursor/mcp.json', 'C:\\U\\.cursor\\mcp.json'],
    [
      'vscode',
      '/home/u/.config/Code/User/mcp.json',
      `${support}/Code/User/mcp.json`,
      `${roaming}\\Code\\User\\mcp.json`,
    ],
    [
      'windsurf',
      '/home/u/.codeium/windsurf/mcp_config.json',
      '/Users/u/.codeium/windsurf/mcp_config.json',
      'C:\\U\\.codeium\\windsurf\\mcp_config.json',
    ],
    ['gemini-cli', '/home/u/.gemini/settings.json', '/Users/u/.gemini/settings.json', 'C:\\U\\.gemini\\settings.json'],
  ]);
});

test('finds settings through the environment, or in the default place', () => {
  const { file } = MCP_CLIENTS.vscode;
  const elsewhere = { XDG_CONFIG_HOME: '/srv/config', APPDATA: 'D:\\Settings' };
  assert.equal(file({ ...LINUX, environment: elsewhere }), '/srv/config/Code/User/mcp.json');
  assert.equal(file({ ...WINDOWS, environment: elsewhere }), 'D:\\Settings\\Code\\User\\mcp.json');
  assert.equal(file({ ...MAC, environment: elsewhere }), file(MAC));
  assert.equal(file({ ...LINUX, environment: { XDG_CONFIG_HOME: '' } }), file(LINUX));
  assert.equal(file({ ...WINDOWS, environment: { APPDATA: '' } }), file(WINDOWS));
});

test('recognizes clients by name, but not members of every object', () => {
  for (const name of Object.keys(MCP_CLIENTS)) assert.ok(isMcpClient(name), name);
  for (const name of ['', 'Cursor', 'toString', '__proto__', 'constructor']) assert.ok(!isMcpClient(name), name);
});

test('uses the member name that the client expects', () => {
  for (const text of ['', ' \n', '{}']) {
    assert.deepEqual(JSON.parse(withSvcd('cursor', text, LAUNCH)), { mcpServers: { svcd: ENTRY } });
    assert.deepEqual(JSON.parse(withSvcd('vscode', text, LAUNCH)), { servers: { svcd: { type: 'stdio', ...ENTRY } } });
  }
});

test('keeps everything else, and replaces the command of svcd', () => {
  const before = {
    theme: 'dark',
    mcpServers: {
      other: { command: 'x', env: { A: '1' } },
      svcd: { command: 'old', args: [], env: { B: '2' }, timeout: 5 },
    },
    servers: { untouched: true },
  };
  const after = withSvcd('claude-desktop', JSON.stringify(before, null, 2), { ...LAUNCH, env: { SVCD_NETWORK: 'n' } });
  assert.deepEqual(JSON.parse(after), {
    ...before,
    mcpServers: {
      other: before.mcpServers.other,
      svcd: { ...ENTRY, env: { B: '2', SVCD_NETWORK: 'n' }, timeout: 5 },
    },
  });
  assert.ok(after.includes('\n  "theme"'), 'as a person would write it');
  assert.equal(
    withSvcd('claude-desktop', after, { ...LAUNCH, env: { SVCD_NETWORK: 'n' } }),
    after,
    'nothing changes the second time',
  );
});

test('replaces an entry with a URL by a command', () => {
  const before = { servers: { svcd: { type: 'http', url: 'http://x/', headers: {}, disabled: true } } };
  const after = withSvcd('vscode', JSON.stringify(before), LAUNCH);
  assert.deepEqual(JSON.parse(after), { servers: { svcd: { type: 'stdio', disabled: true, ...ENTRY } } });
});

test('keeps the rest of the text: numbers, comments, commas, indentation, line ends and the byte order mark', () => {
  const text =
    '\uFEFF{\r\n\t// mine\r\n\t"id": 12345678901234567890, "half": 1.50,\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"x": 1e2,\r\n\t\t}, /* b */\r\n\t},\r\n}\r\n';
  const after = withSvcd('cursor', text, LAUNCH);
  const kept = [
    '\uFEFF{\r\n\t// mine\r\n\t"id": 12345678901234567890, "half": 1.50,',
    '\t\t"a": {\r\n\t\t\t"x": 1e2,\r\n\t\t},',
    '/* b */',
    '},\r\n}\r\n',
  ];
  for (const part of kept) assert.ok(after.includes(part), `${part} in ${after}`);
  assert.match(after, /\r\n\t\t"svcd": \{\r\n\t\t\t"command"/);
  assert.deepEqual(JSON.parse(JSON.stringify(serverIn('cursor', after, 'svcd'))), ENTRY);
  assert.equal(withSvcd('cursor', after, LAUNCH), after);
});

test('finds Claude Code through its environment variable', () => {
  const machine = { ...LINUX, environment: { CLAUDE_CONFIG_DIR: '/srv/claude' } };
  assert.equal(MCP_CLIENTS['claude-code'].file(machine), '/srv/claude/.claude.json');
});

test('leaves an invalid configuration unchanged and names it', () => {
  const clients = Object.keys(MCP_CLIENTS).filter((name): name is McpClientName => isMcpClient(name));
  for (const client of clients) {
    const { servers, title } = MCP_CLIENTS[client];
    for (const text of ['[]', 'null', '1', '"x"', '{', '{ x }', `{"${servers}":[]}`, `{"${servers}":1}`])
      assert.throws(
        () => withSvcd(client, text, LAUNCH),
        (error) =>
          error instanceof Error && error.message.includes(title) && error.message.includes(`svcd mcp print ${client}`),
        `${client} ${text}`,
      );
  }
});

test('adds another server next to svcd', () => {
  const both = withServer('cursor', withSvcd('cursor', '', LAUNCH), { name: 'bob', launch: LAUNCH, shownBy: 'x' });
  assert.deepEqual(JSON.parse(both), { mcpServers: { svcd: ENTRY, bob: ENTRY } });
});

test('refuses a configuration in which a member on the path to the entry occurs twice', () => {
  const twice = [
    '{"mcpServers":{"svcd":{"command":"a"},"svcd":{"command":"b"}}}',
    '{"mcpServers":{"a":{}},"x":1,"mcpServers":{}}',
    '{"mcpServers":{"svcd":{"command":"a","command":"b"}}}',
  ];
  for (const text of twice)
    assert.throws(() => withSvcd('cursor', text, LAUNCH), { code: 'config_invalid', message: /twice/ });
  const elsewhere = '{"x":1,"x":2,"mcpServers":{"a":{"b":1,"b":2}}}';
  assert.match(withSvcd('cursor', elsewhere, LAUNCH).replaceAll(/\s/g, ''), /"x":1,"x":2,[^]*"b":1,"b":2[^]*"svcd"/);
});
