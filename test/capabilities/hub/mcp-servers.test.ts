/** Sessions with servers that do not behave. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { McpServers } from '../../../src/capabilities/hub/mcp-servers.ts';
import { MAX_HUB_TOOLS_PER_AGENT } from '../../../src/foundation/domain/hub.ts';
import { memberOf } from '../../../src/foundation/json.ts';
import { eventually } from '../../support/eventually.ts';
import { newIdentity } from '../../support/identities.ts';
import { TestClock } from '../../support/test-clock.ts';

const { aid: local } = newIdentity();
const { aid: remote } = newIdentity();
const { signal } = new AbortController();

/** A server of a 2025 revision with these tools, whose stream of notifications has this text. */
function world(t: TestContext, tools: readonly unknown[], stream: string) {
  const clock = new TestClock();
  let opened = 0;
  const results: Readonly<Record<string, unknown>> = {
    initialize: {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 'tools', version: '1' },
    },
    'tools/list': { tools },
  };
  const fetch = async (_url: string | URL, { method, body }: RequestInit = {}): Promise<Response> => {
    if (method === 'GET') {
      opened++;
      return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
    }
    const message: unknown = JSON.parse(typeof body === 'string' ? body : '{}');
    const id = memberOf(message, 'id');
    if (id === undefined) return new Response(null, { status: 202 });
    const result = results[String(memberOf(message, 'method'))];
    const error = { code: -32_601, message: 'Unknown method' };
    return Response.json({ jsonrpc: '2.0', id, ...(result === undefined ? { error } : { result }) });
  };
  const servers = new McpServers({ clock, fetch: () => fetch, onChanged: () => {} });
  t.after(() => servers.stop());
  return { clock, servers, opened: () => opened };
}

test('a stream that ends immediately is opened again after a second, even if its server requests another pause', async (t) => {
  for (const retry of [0, 2 ** 40]) {
    const { clock, servers, opened } = world(t, [], `retry: ${retry}\n\n`);
    await servers.list({ local, remote }, signal);
    await eventually('the timers of the session and of the stream', () => clock.timers === 2);
    assert.equal(opened(), 1);
    clock.advance(999);
    assert.equal(clock.timers, 2);
    clock.advance(60_000);
    await eventually('the second stream', () => opened() === 2);
  }
});

test('a long list is cut off', async (t) => {
  const tools = Array.from({ length: 5_000 }, (_, n) => ({ name: `tool_${n}`, inputSchema: { type: 'object' } }));
  const { servers } = world(t, tools, '');
  assert.equal((await servers.list({ local, remote }, signal)).length, 2 * MAX_HUB_TOOLS_PER_AGENT);
});
