/** A daemon whose responses follow the schemas of the operations, with values that a test chooses. */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import type { TSchema } from 'typebox';
import { operations } from '../../src/operations/index.ts';
import type { Declaration } from '../../src/operations/operation.ts';

const table: readonly Declaration[] = Object.values(operations);

/** The values of responses. `at` is the place of a value: the members and indexes that lead to it. */
export interface Values {
  text(at: readonly string[]): string;
  aid(at: readonly string[]): string;
  time(at: readonly string[]): string;
  number(least: number | undefined, at: readonly string[]): number;
  /** The index of one of several values. */
  pick(count: number, at: readonly string[]): number;
  /** Without optional members and texts, with null and false. */
  isLean(at: readonly string[]): boolean;
  /** Number of items of an array. */
  items(at: readonly string[]): number;
  /** Lists have a second page. */
  readonly hasPages?: boolean;
  /** The error that every response is. */
  readonly refusal?: object;
}

function member(schema: TSchema, key: string): unknown {
  return Reflect.get(schema, key);
}

function schemas(value: unknown): TSchema[] {
  return Array.isArray(value) ? (value as TSchema[]) : [];
}

function textOf(schema: TSchema, values: Values, at: readonly string[]): string {
  const format = member(schema, 'format');
  if (format === 'aid') return values.aid(at);
  if (format === 'date-time') return values.time(at);
  const text = values.text(at);
  return member(schema, 'contentEncoding') === 'base64' ? Buffer.from(text).toString('base64') : text;
}

/** A value for a schema. */
function valueOf(schema: TSchema, values: Values, at: readonly string[]): unknown {
  if (Object.hasOwn(schema, 'const')) return member(schema, 'const');
  const words = schemas(member(schema, 'enum'));
  if (words.length > 0) return words[values.pick(words.length, at)];
  const options = schemas(member(schema, 'anyOf'));
  if (options.length > 0) {
    const empty = options.filter((one) => member(one, 'type') === 'null');
    const full = options.filter((one) => member(one, 'type') !== 'null');
    const among = values.isLean(at) && empty.length > 0 ? empty : full;
    return valueOf(among[values.pick(among.length, at)] ?? schema, values, at);
  }
  switch (member(schema, 'type')) {
    case 'string':
      return textOf(schema, values, at);
    case 'array': {
      const items = member(schema, 'items') as TSchema;
      return Array.from({ length: values.items(at) }, (_, i) => valueOf(items, values, [...at, String(i)]));
    }
    case 'object':
      return objectOf(schema, values, at);
    case 'boolean':
      return !values.isLean(at);
    case 'null':
      return null;
    case 'integer':
    case 'number':
      return values.number(member(schema, 'minimum') as number | undefined, at);
    default:
      return values.text(at);
  }
}

function objectOf(schema: TSchema, values: Values, at: readonly string[]): unknown {
  const properties = Object.entries((member(schema, 'properties') ?? {}) as Record<string, TSchema>);
  const required = (member(schema, 'required') ?? []) as string[];
  const own = properties
    .filter(([key]) => required.includes(key) || !values.isLean(at))
    .map(([key, one]) => [key, valueOf(one, values, [...at, key])]);
  const [open] = Object.entries((member(schema, 'patternProperties') ?? {}) as Record<string, TSchema>);
  const text = values.text(at);
  if (open === undefined) return Object.fromEntries(properties.length > 0 ? own : [[text, text]]) as unknown;
  const [pattern, one] = open;
  const key = pattern.includes('aid1') ? values.aid(at) : text;
  return Object.fromEntries([...own, [key, valueOf(one, values, [...at, key])]]) as unknown;
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

export class SchemaDaemon {
  readonly api: string;
  /** Received requests: method, path and body. */
  readonly requests: string[];

  private constructor(api: string, requests: string[]) {
    this.api = api;
    this.requests = requests;
  }

  static async start(t: TestContext, values: Values): Promise<SchemaDaemon> {
    const { refusal } = values;
    const message = values.text([]);
    const requests: string[] = [];
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        const sent = Buffer.concat(chunks).toString();
        requests.push(`${request.method} ${request.url} ${sent}`.trimEnd());
        const { pathname, searchParams } = new URL(request.url ?? '/', 'http://x');
        if (refusal !== undefined) return answer(response, 403, refusal);
        // The event log has an end.
        const declaration = declarationOf(request.method ?? '', pathname);
        if (declaration === undefined) return answer(response, 404, { error: 'not_found', message });
        const isJson = request.headers['content-type']?.startsWith('application/json') === true;
        const { tool, args } = JSON.parse((isJson && sent) || '{}') as {
          tool?: string;
          args?: { after_seq?: number };
        };
        const meant = table.find((one) => one.tool !== undefined && one.tool.name === tool) ?? declaration;
        const { next_cursor: more, ...document } = valueOf(meant.output, values, []) as Record<string, unknown>;
        const isLater = searchParams.has('cursor');
        if (more !== undefined && values.hasPages === true && !isLater) document['next_cursor'] = more;
        if (meant.name === 'eventsPoll') Object.assign(document, { truncated: false, last_seq: 1 });
        if (meant.name === 'eventsPoll' && (args?.after_seq ?? 0) > 0) document['events'] = [];
        if (isLater && values.hasPages !== true) return answer(response, 400, { error: 'invalid_request', message });
        return answer(response, 200, document);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => (server.closeAllConnections(), server.close()));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new SchemaDaemon(`127.0.0.1:${address.port}`, requests);
  }
}
