import assert from 'node:assert/strict';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { test } from 'node:test';
import {
  type ClientLaunch,
  isMcpClient,
  type Machine,
  MCP_CLIENTS,
  type McpClientName,
  removeServer,
  serverIn,
  svcdEntry,
  withServer,
} from '../../../src/surfaces/mcp-hosts/hosts.ts';
import { temporaryDirectory } from '../../support/temporary-directory.ts';

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
    ['codex', '/home/u/.codex/config.toml', '/Users/u/.codex/config.toml', 'C:\\U\\.codex\\config.toml'],
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
    const texts =
      client === 'codex'
        ? ['{', 'x', `${servers} = []`, `${servers} = 1`, `[[${servers}]]`, '[a]\n[a]']
        : ['[]', 'null', '1', '"x"', '{', '{ x }', `{"${servers}":[]}`, `{"${servers}":1}`];
    for (const text of texts)
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

const WITH_ENV = { ...LAUNCH, env: { SVCD_NETWORK: 'n' } };
const CODEX_ENTRY = `command = "/usr/bin/node"
args = ["/opt/svcd", "--mcp-stdio"]
`;

test('finds Codex through its environment variable', () => {
  assert.equal(
    MCP_CLIENTS.codex.file({ ...LINUX, environment: { CODEX_HOME: '/srv/codex' } }),
    '/srv/codex/config.toml',
  );
});

test('adds a table to the TOML of Codex, and keeps the rest of the text', () => {
  assert.equal(withSvcd('codex', '', LAUNCH), `[mcp_servers.svcd]\n${CODEX_ENTRY}`);
  const text = `\uFEFF# mine
model = 'o' # the best

[mcp_servers.other] # not svcd
args = [
  "a", # first
]
command = "x"

[projects."/home/u/x"]
trust_level = "trusted"
# the end`;
  assert.equal(withSvcd('codex', text, LAUNCH), `${text}\n\n[mcp_servers.svcd]\n${CODEX_ENTRY}`);
  const windows = text.replaceAll('\n', '\r\n');
  assert.doesNotMatch(withSvcd('codex', windows, LAUNCH), /[^\r]\n/);
});

test('changes an entry of Codex in the notation that it has', () => {
  const cases: readonly (readonly [string, string])[] = [
    [
      '[mcp_servers.svcd]\ncommand = "old" # c\nstartup_timeout_sec = 9\nurl = "http://x"\n\n[b]\nx = 1\n',
      '[mcp_servers.svcd]\ncommand = "/usr/bin/node" # c\nstartup_timeout_sec = 9\nargs = ["/opt/svcd", "--mcp-stdio"]\nenv = { SVCD_NETWORK = "n" }\n\n[b]\nx = 1\n',
    ],
    [
      '[mcp_servers.svcd]\ncommand = "old"\n[mcp_servers.svcd.env]\nA = "1" # a\n[b]\n',
      '[mcp_servers.svcd]\ncommand = "/usr/bin/node"\nargs = ["/opt/svcd", "--mcp-stdio"]\n[mcp_servers.svcd.env]\nA = "1" # a\nSVCD_NETWORK = "n"\n[b]\n',
    ],
    [
      '[mcp_servers]\nsvcd = { command = "old" } # s\nother = { command = "x" }\n',
      '[mcp_servers]\nsvcd = { command = "/usr/bin/node", args = ["/opt/svcd", "--mcp-stdio"], env = { SVCD_NETWORK = "n" } } # s\nother = { command = "x" }\n',
    ],
    [
      '[mcp_servers]\nsvcd.command = "old"\n[b]\n',
      '[mcp_servers]\nsvcd.command = "/usr/bin/node"\nsvcd.args = ["/opt/svcd", "--mcp-stdio"]\nsvcd.env = { SVCD_NETWORK = "n" }\n[b]\n',
    ],
    [
      'mcp_servers = { other = { command = "x" } }\n',
      'mcp_servers = { other = { command = "x" }, svcd = { command = "/usr/bin/node", args = ["/opt/svcd", "--mcp-stdio"], env = { SVCD_NETWORK = "n" } } }\n',
    ],
    [
      '[mcp_servers.svcd.env]\nA = "1"\n',
      '[mcp_servers.svcd.env]\nA = "1"\nSVCD_NETWORK = "n"\n\n[mcp_servers.svcd]\ncommand = "/usr/bin/node"\nargs = ["/opt/svcd", "--mcp-stdio"]\n',
    ],
  ];
  for (const [before, after] of cases) {
    assert.equal(withSvcd('codex', before, WITH_ENV), after);
    assert.equal(withSvcd('codex', after, WITH_ENV), after, 'nothing changes the second time');
  }
});

test('removes an entry of Codex with its tables, and nothing else', (t) => {
  const machine = { ...LINUX, home: temporaryDirectory(t) };
  const file = MCP_CLIENTS.codex.file(machine);
  mkdirSync(dirname(file));
  const cases: readonly (readonly [string, string])[] = [
    [
      '# a\n[mcp_servers.svcd]\ncommand = "x"\n[mcp_servers.svcd.env]\nA = "1"\n\n# b\n[b]\nx = 1\n',
      '# a\n\n# b\n[b]\nx = 1\n',
    ],
    ['[mcp_servers]\nsvcd = { command = "x" }\nother.command = "y"\n', '[mcp_servers]\nother.command = "y"\n'],
    [
      'mcp_servers = { svcd = { command = "x" }, o = { command = "y" } }\n',
      'mcp_servers = { o = { command = "y" } }\n',
    ],
  ];
  for (const [before, after] of cases) {
    writeFileSync(file, before);
    assert.equal(removeServer('codex', { name: 'svcd', own: true }, machine, false).changed, true);
    assert.equal(readFileSync(file, 'utf8'), after);
  }
});
