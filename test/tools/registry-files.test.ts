/** The files with which registries of MCP servers and plugins of assistants describe svcd. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { daemonProgram } from '../../src/daemon/args.ts';

const MAX_SKILL_TOKENS = 400;
/** As in the limits of tool lists. */
const CHARS_PER_TOKEN = 4;

const text = { type: 'string', minLength: 1 };
const exact = { ...text, pattern: String.raw`^\d+\.\d+\.\d+(-[\w.-]+)?$` };

/** The parts of the schema of the MCP registry, 2025-12-11, that svcd uses. */
const SERVER = {
  type: 'object',
  additionalProperties: false,
  required: ['$schema', 'name', 'description', 'version', 'packages'],
  properties: {
    $schema: { const: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json' },
    name: { type: 'string', minLength: 3, maxLength: 200, pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$' },
    title: { ...text, maxLength: 100 },
    description: { ...text, maxLength: 100 },
    version: { ...exact, maxLength: 255 },
    packages: {
      type: 'array',
      minItems: 1,
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['registryType', 'identifier', 'version', 'transport'],
        properties: {
          registryType: { const: 'npm' },
          identifier: text,
          version: exact,
          runtimeHint: { const: 'npx' },
          transport: { type: 'object', required: ['type'], properties: { type: { const: 'stdio' } } },
          packageArguments: {
            type: 'array',
            items: {
              type: 'object',
              additionalProperties: false,
              required: ['type', 'name'],
              properties: { type: { const: 'named' }, name: { type: 'string', pattern: '^--' }, value: text },
            },
          },
        },
      },
    },
  },
};

/** The parts of the schema of plugins of Claude Code that svcd uses. */
const PLUGIN = {
  type: 'object',
  additionalProperties: false,
  required: ['name', 'version', 'description', 'author', 'mcpServers'],
  properties: {
    name: { type: 'string', pattern: '^[a-z][a-z0-9]*(-[a-z0-9]+)*$' },
    version: exact,
    description: text,
    author: { type: 'object', required: ['name'], properties: { name: text } },
    license: text,
    keywords: { type: 'array', items: text },
    mcpServers: {
      type: 'object',
      additionalProperties: {
        type: 'object',
        additionalProperties: false,
        required: ['command'],
        properties: { command: text, args: { type: 'array', items: text } },
      },
    },
  },
};

type Members = Readonly<Record<string, unknown>>;

function read(path: string): string {
  return readFileSync(path, 'utf8');
}

const manifest: Members = JSON.parse(read('package.json'));

function check(schema: object, value: unknown): void {
  const validate = new Ajv2020({ strict: false }).compile(schema);
  assert.ok(validate(value), JSON.stringify(validate.errors));
}

interface ServerFile {
  readonly name: string;
  readonly packages: readonly {
    readonly identifier: string;
    readonly version: string;
    readonly packageArguments: readonly { readonly name: string; readonly value?: string }[];
  }[];
}

test('server.json follows the schema of the registry and names this package', () => {
  const server: ServerFile & Members = JSON.parse(read('server.json'));
  check(SERVER, server);
  const { name, packages } = server;
  // The registry compares it.
  assert.equal(manifest['mcpName'], name);
  for (const { identifier, version } of [...packages, { identifier: 'svcd', version: server['version'] }])
    assert.deepEqual([identifier, version], [manifest['name'], manifest['version']]);
});

test('the plugin follows the schema of Claude Code', () => {
  const plugin: Members = JSON.parse(read('plugin/.claude-plugin/plugin.json'));
  check(PLUGIN, plugin);
  assert.deepEqual([plugin['name'], plugin['version']], [manifest['name'], manifest['version']]);
});

test('both start svcd with options that it has', async () => {
  const { packages }: ServerFile = JSON.parse(read('server.json'));
  const {
    mcpServers,
  }: {
    mcpServers: Record<string, { readonly args: readonly string[] }>;
  } = JSON.parse(read('plugin/.claude-plugin/plugin.json'));
  const [, , ...plugin] = mcpServers['svcd']?.args ?? [];
  const registry = packages.flatMap(({ packageArguments }) =>
    packageArguments.flatMap(({ name, value }) => (value === undefined ? [name] : [name, value])),
  );
  for (const args of [plugin, registry]) {
    const started: unknown[] = [];
    const program = daemonProgram(
      '1',
      () => '/nowhere',
      async ({ mcpStdio }) => void started.push(mcpStdio?.profiles),
    );
    await program.parseAsync(args, { from: 'user' });
    assert.deepEqual(started, ['lean']);
  }
});

test('the skill names tools of the lean profile only, within its tokens', async () => {
  const skill = read('plugin/skills/svcd/SKILL.md');
  const [, head = '', body = ''] = /^---\n([^]*?)\n---\n([^]*)$/.exec(skill) ?? [];
  const fields = new Map(head.split('\n').map((line) => [line.split(': ')[0], line.split(': ').slice(1).join(': ')]));
  assert.deepEqual([...fields.keys()], ['name', 'description']);
  assert.match(fields.get('name') ?? '', /^[a-z0-9-]{1,64}$/);
  assert.ok((fields.get('description') ?? '').length <= 1024);
  assert.ok(body.length / CHARS_PER_TOKEN <= MAX_SKILL_TOKENS, `${body.length / CHARS_PER_TOKEN} tokens`);
  const { ToolCatalog } = await import('../../src/surfaces/mcp/catalog.ts');
  const { ToolTable } = await import('../../src/operations/tool-call.ts');
  const { bindAll } = await import('../surfaces/mcp/world.ts');
  const tools = new ToolCatalog(new ToolTable({ operations: bindAll(), pending: () => ({}) })).list('lean');
  const names = new Set(tools.map(({ name }) => name));
  const named = [...body.matchAll(/`((?:svc_|chat_|group_)\w+)`/g)].map(([, name = '']) => name);
  assert.ok(named.length > 10);
  assert.deepEqual(
    named.filter((name) => !names.has(name)),
    [],
  );
});
