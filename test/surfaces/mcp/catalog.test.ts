import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { operations } from '../../../src/operations/index.ts';
import { MCP_PROFILES } from '../../../src/operations/mcp.ts';
import type { Declaration } from '../../../src/operations/operation.ts';
import { ToolTable } from '../../../src/operations/tool-call.ts';
import { isShown, ToolCatalog } from '../../../src/surfaces/mcp/catalog.ts';
import { bindAll } from './world.ts';

interface Surface {
  readonly tools: readonly { name: string; required: string[]; optional: string[] }[];
}

const surface: Surface = JSON.parse(readFileSync(new URL('../../vectors/surface.json', import.meta.url), 'utf8'));
const catalog = new ToolCatalog(new ToolTable({ operations: bindAll(), pending: () => ({}) }));
const tools = catalog.list(undefined);

/** Token budget of an assistant for the whole list. */
const MAX_TOKENS = 15_000;
/** Characters per token of JSON schemas. Tokenizers need 3.6 to 4.2, so this overestimates. */
const CHARS_PER_TOKEN = 3.5;

test('each listed tool has the parameters of the contract', () => {
  const own = [
    { name: 'svc_origin_open', required: ['remote_aid'], optional: ['access_token', 'local_aid', 'local_port'] },
    { name: 'svc_card', required: ['aid'], optional: ['local_aid'] },
    { name: 'svc_file_offers', required: ['aid'], optional: [] },
    { name: 'svc_file_take', required: ['aid', 'id'], optional: [] },
  ];
  const wanted = new Map([...surface.tools, ...own].map((tool) => [tool.name, tool]));
  const differences = tools.flatMap(({ name, inputSchema: { properties = {}, required = [] } }) => {
    const { required: needed = [], optional = [] } = wanted.get(name) ?? {};
    const have = { required: [...required].sort(), all: Object.keys(properties).sort() };
    const more = name === 'svc_fetch' ? ['timeout_s'] : [];
    const want = { required: [...needed].sort(), all: [...needed, ...optional, ...more].sort() };
    return JSON.stringify(have) === JSON.stringify(want) ? [] : [{ name, have, want }];
  });
  assert.deepEqual(differences, []);
});

test('the whole list costs less than 15,000 tokens, with a reserve', () => {
  const characters = JSON.stringify({ tools }).length;
  const perTool = characters / tools.length;
  const whole = perTool * surface.tools.length;
  assert.ok(characters / CHARS_PER_TOKEN < MAX_TOKENS, `${Math.ceil(characters / CHARS_PER_TOKEN)} tokens`);
  assert.ok(whole / CHARS_PER_TOKEN < MAX_TOKENS, `${Math.ceil(whole / CHARS_PER_TOKEN)} tokens once all are there`);
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
    assert.equal(inputSchema['additionalProperties'], false, name);
  }
});

test('the annotations describe the effects of a tool', () => {
  const annotations = new Map(tools.map((tool) => [tool.name, tool.annotations]));
  assert.deepEqual(annotations.get('svc_discover'), {
    readOnlyHint: true,
    destructiveHint: false,
    openWorldHint: true,
  });
  assert.deepEqual(annotations.get('svc_agent_delete'), {
    readOnlyHint: false,
    destructiveHint: true,
    openWorldHint: false,
  });
  assert.deepEqual(annotations.get('svc_agent_publish'), {
    readOnlyHint: false,
    destructiveHint: false,
    idempotentHint: true,
    openWorldHint: true,
  });
  assert.equal(annotations.get('svc_fetch')?.openWorldHint, true);
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
  const every = MCP_PROFILES.join(',');
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
