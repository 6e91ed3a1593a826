/**
 * A daemon whose responses are valid and hostile: each text contains terminal control sequences. A real daemon forwards
 * some texts of strangers.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import type { TSchema } from 'typebox';
import { operations } from '../../src/operations/index.ts';
import type { Declaration } from '../../src/operations/operation.ts';

/** Titles, colors, cursor movements, an 8-bit escape, hidden and reordered text, and an extra line. */
export const HOSTILE =
  '\u001b]0;owned\u0007\u001b[2J\u009b31mred\u202egnp.exe\u200b\u{e0041}\u2028x\rline\nsvc: forged' +
  '\u001b]8;;https://evil.example\u001b\\link\u001b]8;;\u0007\u009d52;c;b3duZWQ=\u009c\u2066\u3164\u034f\u{e0100}';

const table: readonly Declaration[] = Object.values(operations);

function member(schema: TSchema, key: string): unknown {
  return Reflect.get(schema, key);
}

function schemas(value: unknown): TSchema[] {
  return Array.isArray(value) ? (value as TSchema[]) : [];
}

function text(schema: TSchema, aid: string): string {
  const format = member(schema, 'format');
  if (format === 'aid') return aid;
  if (format === 'date-time') return '2026-01-01T00:00:00.000Z';
  return member(schema, 'contentEncoding') === 'base64' ? Buffer.from(HOSTILE).toString('base64') : HOSTILE;
}

/** A hostile value for a schema, with every optional member. */
function hostile(schema: TSchema, aid: string): unknown {
  if (Object.hasOwn(schema, 'const')) return member(schema, 'const');
  const [first] = schemas(member(schema, 'enum'));
  if (first !== undefined) return first;
  const options = schemas(member(schema, 'anyOf'));
  const [option] = options.filter((one) => member(one, 'type') !== 'null');
  if (option !== undefined) return hostile(option, aid);
  switch (member(schema, 'type')) {
    case 'string':
      return text(schema, aid);
    case 'array':
      return [hostile(member(schema, 'items') as TSchema, aid)];
    case 'object': {
      const properties = (member(schema, 'properties') ?? {}) as Record<string, TSchema>;
      const own = Object.entries(properties).map(([key, one]) => [key, hostile(one, aid)]);
      const open = Object.hasOwn(schema, 'patternProperties') || own.length === 0 ? [[HOSTILE, HOSTILE]] : [];
      return Object.fromEntries([...own, ...open]) as unknown;
    }
    case 'boolean':
      return true;
    case 'null':
      return null;
    case 'integer':
    case 'number':
      return Number(member(schema, 'minimum') ?? 1);
    default:
      return HOSTILE;
  }
}

function declarationOf(method: string, path: string): Declaration | undefined {
  return table.find((one) => {
    if (one.path === undefined || one.method !== method) return false;
    return new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path);
  });
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

/** Starts it and returns its address. With `refuses`, every response is an error with a hostile message. */
export async function hostileDaemon(t: TestContext, aid: string, refuses: boolean): Promise<string> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x');
      if (refuses)
        return answer(response, 403, { error: 'access_denied', message: HOSTILE, details: { path: HOSTILE } });
      // One page is enough, and the event log has an end.
      const declaration = declarationOf(request.method ?? '', pathname);
      if (declaration === undefined) return answer(response, 404, { error: 'not_found', message: HOSTILE });
      const { tool, args } = JSON.parse(Buffer.concat(chunks).toString() || '{}') as {
        tool?: string;
        args?: { after_seq?: number };
      };
      const meant = table.find((one) => one.tool !== undefined && one.tool.name === tool) ?? declaration;
      const { next_cursor: _more, ...document } = hostile(meant.output, aid) as Record<string, unknown>;
      if (meant.name === 'eventsPoll') Object.assign(document, { truncated: false, last_seq: 1 });
      if (meant.name === 'eventsPoll' && (args?.after_seq ?? 0) > 0) document['events'] = [];
      if (searchParams.has('cursor')) return answer(response, 400, { error: 'invalid_request', message: HOSTILE });
      return answer(response, 200, document);
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => (server.closeAllConnections(), server.close()));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `127.0.0.1:${address.port}`;
}
