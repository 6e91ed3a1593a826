import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { operations, streams } from '../../src/operations/index.ts';
import type { Declaration } from '../../src/operations/operation.ts';
import { parametersOf } from '../support/changed-tools.ts';

interface Surface {
  routes: { method: string; path: string }[];
  tools: { name: string; required: string[]; optional: string[] }[];
}

const surface = JSON.parse(readFileSync(new URL('../vectors/surface.json', import.meta.url), 'utf8')) as Surface;
const table: readonly Declaration[] = Object.values(operations);

/**
 * Routes of the contract that are not implemented yet. An implemented route in it is an error, so the list only
 * shrinks.
 */
const ROUTES_TO_COME: readonly string[] = [];

/** Additional routes, which the contract does not name. */
const ROUTES_OF_OUR_OWN = [
  'GET /sessions/{}',
  'GET /agents/{}/caller-key',
  'GET /agents/{}/evidence',
  'PUT /agents/{}/evidence',
  'GET /agents/{}/bundle',
  'GET /agents/{}/group-invitations',
  'DELETE /agents/{}/group-invitations/{}',
  'POST /agents/import',
  'GET /agents/{}/cas',
  'DELETE /agents/{}/cas/{}',
  'POST /agents/{}/file-offers',
  'GET /agents/{}/file-offers',
  'GET /agents/{}/file-offers/{}',
  'POST /agents/{}/file-offers/{}/accept',
  'POST /agents/{}/file-offers/{}/taken',
  'POST /agents/{}/file-offers/{}/decline',
  'DELETE /agents/{}/file-offers/{}',
  'GET /agents/{}/file-offers/{}/content',
  'POST /agents/{}/file-offers/{}/content',
  'GET /agents/{}/file-offers/{}/hashes',
  'GET /node/remote-admin/audit',
  'GET /did/{}',
  'GET /discover/recent',
  'GET /.well-known/ai-catalog.json',
  'POST /search',
  'POST /ard/search',
  'POST /origins/{}',
  'GET /origins',
  'DELETE /origins/{}',
  'GET /node/entry',
  'PUT /node/entry/allowed/{}',
  'DELETE /node/entry/allowed/{}',
  'DELETE /node/entry/names/{}',
  'POST /node/entry/invitations',
  'POST /exposures/{}',
  'GET /exposures',
  'DELETE /exposures/{}',
  'POST /exposures/{}/tokens',
  'DELETE /exposures/{}/tokens/{}',
  'GET /on-demand',
  'PUT /agents/{}/on-demand',
  'DELETE /agents/{}/on-demand',
  'GET /hooks',
  'POST /hooks',
  'PATCH /hooks/{}',
  'DELETE /hooks/{}',
  'GET /hooks/{}/deliveries',
  'GET /hooks/{}/deliveries/{}',
  'POST /hooks/{}/deliveries/{}/retry',
  'DELETE /hooks/{}/deliveries/{}',
  'GET /push',
  'DELETE /push/{}',
  'GET /resolve/{}/did',
  'GET /resolve/{}/card',
  'PUT /agents/{}/card',
  'GET /agents/{}/card',
  'DELETE /agents/{}/card',
  'GET /node/invitation',
  'POST /node/join',
  'GET /node/contacts',
  'DELETE /node/contacts/{}',
  'GET /agents/{}/callers',
  'PUT /node/files-root',
  'POST /node/access/confirm',
  'GET /access/requests',
  'POST /access/requests/{}/allow',
  'POST /access/requests/{}/refuse',
  'GET /traces',
  'GET /traces/{}',
  'POST /traces/next/{}',
  'GET /node/events',
  'GET /node/events/recent',
  'GET /agents/{}/services',
  'GET /node/links',
  'GET /node/log',
  'GET /node/doctor',
  'GET /mcp/hosts',
  'ANY /mcp/hub',
  'GET /mcp/hub/sources',
  'PUT /mcp/hub/sources/{}',
  'DELETE /mcp/hub/sources/{}',
  'GET /mcp/hub/changes',
  'POST /mcp/hub/changes/{}/accept',
  'POST /mcp/hub/changes/{}/refuse',
  'POST /mcp/hub/find',
  'POST /mcp/hub/refresh',
  'GET /mcp/hub/tool',
  'POST /node/restart',
  'POST /node/stop',
  'GET /node/peers',
  'GET /node/traffic',
  'DELETE /agents/{}/mailbox/{}',
  'GET /agents/{}/mailbox/queued',
  'DELETE /agents/{}/mailbox/queued/{}',
  'GET /node/netcheck',
  'GET /node/netcheck/{}',
  'POST /node/ping/{}',
  'GET /',
  'GET /panel/{}',
  'POST /panel/login',
  'POST /panel/session',
  'GET /panel/sessions',
  'DELETE /panel/sessions/{}',
  'ANY /aid/{}',
  'ANY /mcp',
  'ANY /via/{}/{}',
  'GET /metrics',
  'GET /openapi.json',
  'GET /docs',
  'GET /docs/{}',
];

/** Additional tools, which the contract does not name. */
const TOOLS_OF_OUR_OWN = [
  'svc_address_book',
  'svc_origin_open',
  'svc_exposures',
  'svc_card',
  'svc_file_offers',
  'svc_file_take',
  'svc_hooks',
  'svc_hook_deliveries',
];

/** A route by its method and shape: names of parameters are not part of the contract. */
function route(method: string, path: string): string {
  return `${method} ${path.replaceAll(/\{\w+\*?\}/g, '{}')}`;
}

function served(): Set<string> {
  const operations = table.flatMap(({ method, path }) => (path === undefined ? [] : [route(method, path)]));
  const byHand = Object.values(streams).flatMap(({ methods, path }) =>
    (methods === 'ANY' ? ['ANY'] : methods).map((method) => route(method, path)),
  );
  return new Set([...operations, ...byHand]);
}

function sorted(names: Iterable<string>): string[] {
  return [...names].sort();
}

test('every route of the contract is in the table, or on the list of missing ones', () => {
  const have = served();
  const wanted = new Set(surface.routes.map(({ method, path }) => route(method, path)));
  const missing = [...wanted].filter((name) => !have.has(name));
  const toCome = ROUTES_TO_COME.map((name) => name.replaceAll(/\{\w+\}/g, '{}'));
  assert.deepEqual(
    toCome.filter((name) => have.has(name)),
    [],
    'these routes are implemented: remove them from the list',
  );
  assert.deepEqual(sorted(missing), sorted(toCome), 'missing routes differ from the list');
});

test('every route of the table is in the contract, or an additional one', () => {
  const wanted = new Set(surface.routes.map(({ method, path }) => route(method, path)));
  const extra = [...served()].filter((name) => !wanted.has(name) && !name.startsWith('HEAD '));
  assert.deepEqual(sorted(extra), sorted(ROUTES_OF_OUR_OWN));
});

function toolParameters(declaration: Declaration): { required: string[]; optional: string[] } {
  const { params, query, body, tool } = declaration;
  const omitted = new Set(tool?.omit);
  const renamed = new Map(Object.entries(tool?.rename ?? {}).map(([parameter, key]) => [key, parameter]));
  const required: string[] = [];
  const optional: string[] = [];
  for (const schema of [params, query, body]) {
    const needed = new Set<string>(schema.required);
    for (const key of Object.keys(schema.properties)) {
      if (!omitted.has(key)) (needed.has(key) ? required : optional).push(renamed.get(key) ?? key);
    }
  }
  return { required: sorted(required), optional: sorted(optional) };
}

test('every tool of the contract is in the table with its parameters, and no other', () => {
  const have = new Map(
    table.flatMap((declaration) => (declaration.tool ? [[declaration.tool.name, declaration]] : [])),
  );
  const missing = surface.tools.filter(({ name }) => !have.has(name)).map(({ name }) => name);
  assert.deepEqual(missing, [], 'missing tools of the contract');
  const known = new Set([...surface.tools.map(({ name }) => name), ...TOOLS_OF_OUR_OWN]);
  assert.deepEqual(
    [...have.keys()].filter((name) => !known.has(name)),
    [],
    'tools that the contract does not name',
  );
  const differences = surface.tools.flatMap((tool) => {
    const { name } = tool;
    const declaration = have.get(name);
    if (declaration === undefined) return [];
    const wanted = parametersOf(tool);
    const got = toolParameters(declaration);
    return JSON.stringify(got) === JSON.stringify(wanted) ? [] : [{ name, wanted, got }];
  });
  assert.deepEqual(differences, []);
});
