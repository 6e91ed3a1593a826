import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { operations } from '../../../src/operations/index.ts';
import { HOST_PROFILE, MCP_PROFILES } from '../../../src/operations/mcp.ts';
import type { Declaration } from '../../../src/operations/operation.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { isShown, ToolCatalog } from '../../../src/surfaces/mcp/catalog.ts';
import { INSTRUCTIONS } from '../../../src/surfaces/mcp/server.ts';
import { parametersOf } from '../../support/changed-tools.ts';
import { bindAll } from './world.ts';

interface Surface {
  readonly tools: readonly { name: string; required: string[]; optional: string[] }[];
}

const surface: Surface = JSON.parse(readFileSync(new URL('../../vectors/surface.json', import.meta.url), 'utf8'));
const catalog = new ToolCatalog(new ToolTable({ operations: bindAll(), pending: () => ({}) }));
const tools = catalog.list(undefined);

/** Token budgets of an assistant: for all tools, and for the profile that svcd writes for programs that start it. */
const MAX_TOKENS = 12_000;
const MAX_LEAN_TOKENS = 4_000;
/** Characters per token of JSON schemas. Tokenizers need 3.6 to 4.2, so this overestimates. */
const CHARS_PER_TOKEN = 3.5;

test('each listed tool has the parameters of the contract', () => {
  const own = [
    { name: 'svc_exposures', required: [], optional: [] },
    { name: 'svc_origin_open', required: ['remote_aid'], optional: ['access_token', 'local_aid', 'local_port'] },
    { name: 'svc_address_book', required: [], optional: [] },
    { name: 'svc_card', required: ['aid'], optional: ['local_aid'] },
    { name: 'svc_file_offers', required: ['aid'], optional: [] },
    { name: 'svc_file_take', required: ['aid', 'id'], optional: [] },
    { name: 'svc_hooks', required: [], optional: [] },
  ];
  const wanted = new Map([...surface.tools, ...own].map((tool) => [tool.name, tool]));
  const differences = tools.flatMap(({ name, inputSchema: { properties = {}, required = [] } }) => {
    const want = parametersOf(wanted.get(name) ?? { name, required: [], optional: [] });
    const have = {
      required: [...required].sort(),
      optional: Object.keys(properties)
        .filter((one) => !required.includes(one))
        .sort(),
    };
    return JSON.stringify(have) === JSON.stringify(want) ? [] : [{ name, have, want }];
  });
  assert.deepEqual(differences, []);
});

function tokensOf(profile: string | undefined): number {
  return Math.ceil(JSON.stringify({ tools: catalog.list(profile) }).length / CHARS_PER_TOKEN);
}

test('the whole list costs at most 12,000 tokens, and the lean profile 4,000', () => {
  assert.ok(tokensOf(undefined) <= MAX_TOKENS, `${tokensOf(undefined)} tokens`);
  assert.ok(tokensOf(HOST_PROFILE) <= MAX_LEAN_TOKENS, `${tokensOf(HOST_PROFILE)} tokens`);
});

test('the full profile is the whole list, and the lean one has the tools that the instructions name', () => {
  assert.deepEqual(catalog.list('full'), tools);
  const lean = new Set(catalog.list('lean').map(({ name }) => name));
  const named = INSTRUCTIONS.match(/\b(?:svc|chat|group)_[a-z_]+/g) ?? [];
  assert.deepEqual(
    named.filter((name) => !lean.has(name)),
    [],
  );
  assert.ok(named.length > 10);
});

function copy(schema: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(schema));
}

test('every schema is a valid JSON Schema of an open object', () => {
  const ajv = new Ajv2020({ strict: true, strictRequired: false, allowUnionTypes: true, strictTypes: false });
  for (const format of ['date-time', 'aid']) ajv.addFormat(format, true);
  for (const { name, inputSchema, outputSchema } of tools) {
    assert.doesNotThrow(() => ajv.compile(copy(inputSchema)), name);
    assert.doesNotThrow(() => ajv.compile(copy(outputSchema ?? {})), name);
    assert.equal(outputSchema?.['type'], 'object', name);
    assert.equal(outputSchema?.['additionalProperties'], undefined, name);
    const hasParameters = Object.keys(inputSchema.properties ?? {}).length > 0;
    assert.equal(inputSchema['additionalProperties'], hasParameters ? undefined : false, name);
  }
});

test('the annotations describe the effects of a tool, without the defaults of the protocol', () => {
  const annotations = new Map(tools.map((tool) => [tool.name, tool.annotations]));
  assert.deepEqual(annotations.get('svc_discover'), {
    readOnlyHint: true,
  });
  assert.deepEqual(annotations.get('svc_agent_delete'), {
    openWorldHint: false,
  });
  assert.deepEqual(annotations.get('svc_agent_publish'), {
    destructiveHint: false,
    idempotentHint: true,
  });
  assert.equal(annotations.get('svc_fetch')?.openWorldHint, undefined);
  assert.equal(annotations.get('svc_agents_list')?.openWorldHint, false);
});

test('an output schema describes the result of the operation', () => {
  const all: readonly Declaration[] = Object.values(operations);
  for (const { tool, output } of all) {
    if (tool === undefined) continue;
    const { outputSchema } = tools.find(({ name }) => name === tool.name) ?? {};
    assert.deepEqual(
      Object.keys((outputSchema?.['properties'] as object | undefined) ?? {}),
      Object.keys((Reflect.get(output, 'properties') as object | undefined) ?? {}),
      tool.name,
    );
  }
});

test('the profiles together contain every tool except wallet and housekeeping tools', () => {
  const every = MCP_PROFILES.filter((name) => name !== 'full').join(',');
  const hidden = surface.tools.map(({ name }) => name).filter((name) => !isShown(name, every));
  assert.deepEqual(hidden, [
    'svc_agents_generate_ethereum',
    'svc_ethereum_delegation_message',
    'svc_ethereum_register',
    'svc_ethereum_proof',
    'svc_agent_get',
    'svc_agent_probe',
    'svc_agent_heartbeat',
    'svc_agent_delete',
    'svc_agent_publish_record',
    'svc_resolve_records',
    'svc_service_unregister',
  ]);
});
