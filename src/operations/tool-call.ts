/** The operations as tools, each with one flat list of parameters. Used by `POST /mcp/call` and the MCP server. */
import type { TObject, TSchema } from 'typebox';
import { type ErrorCode, SvcError } from '../foundation/errors.ts';
import { type Aid, parseAid } from '../foundation/identity/aid.ts';
import { isObject } from '../foundation/json.ts';
import { compileInput, type ParseAid, type RawInput, unknownMembers } from './input.ts';
import {
  type BoundOperation,
  bodyInputKey,
  type CallContext,
  type Declaration,
  type ToolDeclaration,
} from './operation.ts';

/** JSON Schema of the arguments of a tool. */
export interface ToolInputSchema {
  readonly type: 'object';
  readonly properties: Readonly<Record<string, TSchema>>;
  readonly required?: readonly string[];
  readonly additionalProperties: false;
}

/** A tool as clients see it. */
export interface ToolView {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: ToolInputSchema;
  readonly outputSchema: TSchema;
  /** Read-only. */
  readonly readOnly: boolean;
  readonly destructive: boolean;
  readonly idempotent: boolean;
  /** The result contains text written by other agents. */
  readonly foreignText: boolean;
  /** Communicates with other nodes. */
  readonly openWorld: boolean;
}

type Part = keyof RawInput;
type Arguments = Readonly<Record<string, unknown>>;

/** The input member of a tool argument, and its schema. */
interface Place {
  readonly part: Part;
  readonly key: string;
  readonly schema: TSchema;
  readonly isRequired: boolean;
}

interface Tool {
  readonly view: ToolView;
  readonly operation: BoundOperation;
  readonly places: ReadonlyMap<string, Place>;
  readonly read: (raw: RawInput) => Arguments;
  /** `aid` is the local agent that acts. */
  readonly actsLocally: boolean;
}

export interface ToolTableDependencies {
  readonly operations: readonly BoundOperation[];
  /** Pending items of the local agents, by AID. Added to every result that is an object. */
  readonly pending: () => Readonly<Record<string, unknown>>;
  /** Reads AIDs in arguments. Default: no labels. */
  readonly parseAid?: ParseAid;
  /**
   * The only local agent: it acts if a call omits the local agent. Absent: calls must name it.
   * @throws SvcError `local_aid_required` if there are several, `not_found` if there is none
   */
  readonly onlyAgent?: () => Aid;
}

/** Operations that can fail with one of these communicate with other nodes. */
const NETWORK_ERRORS: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'resolve_failed',
  'network_unavailable',
  'clock_wrong',
  'connect_failed',
  'not_acknowledged',
  'network_not_ready',
]);

/** The argument with the local agent. */
const OWN_AGENT = 'aid';

const PARTS = ['params', 'query', 'body'] as const satisfies readonly Part[];

function placesOf(declaration: Declaration, tool: ToolDeclaration): Map<string, Place> {
  const nameOf = new Map(Object.entries(tool.rename ?? {}).map(([name, key]) => [key, name]));
  const omitted = new Set(tool.omit);
  const places = new Map<string, Place>();
  for (const part of PARTS) {
    const { properties, required }: TObject = declaration[part];
    const needed = new Set<string>(required);
    for (const [key, schema] of Object.entries(properties)) {
      const input = part === 'body' ? bodyInputKey(key, declaration.params) : key;
      const place = { part, key, schema, isRequired: needed.has(key) };
      if (!omitted.has(input)) places.set(nameOf.get(input) ?? input, place);
    }
  }
  return places;
}

function inputSchema(places: ReadonlyMap<string, Place>): ToolInputSchema {
  const properties = Object.fromEntries([...places].map(([name, { schema }]) => [name, schema]));
  const required = [...places].flatMap(([name, { isRequired }]) => (isRequired ? name : []));
  return { type: 'object', properties, ...(required.length > 0 ? { required } : {}), additionalProperties: false };
}

function toolOf(operation: BoundOperation, tool: ToolDeclaration, parse: ParseAid): Tool {
  const { declaration } = operation;
  const places = placesOf(declaration, tool);
  const view: ToolView = {
    name: tool.name,
    description: tool.description,
    inputSchema: inputSchema(places),
    outputSchema: declaration.output,
    readOnly: declaration.permission === 'read',
    destructive: tool.destructive ?? false,
    idempotent: tool.idempotent ?? declaration.permission === 'read',
    foreignText: tool.foreignText ?? false,
    openWorld: tool.foreignText === true || declaration.errors.some((code) => NETWORK_ERRORS.has(code)),
  };
  const actsLocally = places.get(OWN_AGENT)?.part === 'params' && tool.requiresAid !== true;
  return { view, operation, places, read: compileInput(declaration, parse, 'json'), actsLocally };
}

/** An invalid argument under its name in the tool. */
function inToolTerms(error: unknown, places: ReadonlyMap<string, Place>): unknown {
  if (!(error instanceof SvcError)) return error;
  const { path, problem } = error.details ?? {};
  if (typeof path !== 'string') return error;
  const [, key = '', ...rest] = path.split('/');
  const part = error.details?.['in'] === 'path' ? 'params' : error.details?.['in'];
  const name = [...places].find(([, place]) => place.key === key && place.part === part)?.[0] ?? key;
  const shown = `/${[name, ...rest].join('/')}`;
  const wrongAid = `${shown} is neither an AID nor a label in the address book (svc_address_book). Check it for typing errors.`;
  return new SvcError(error.code, {
    message:
      error.code === 'bad_aid'
        ? wrongAid
        : typeof problem === 'string'
          ? `Invalid arguments: ${shown} ${problem}.`
          : `${error.message} (${shown})`,
    details: { ...error.details, in: 'args', path: shown },
    cause: error,
  });
}

export class ToolTable {
  readonly #tools = new Map<string, Tool>();
  readonly #pending: ToolTableDependencies['pending'];
  readonly #onlyAgent: ToolTableDependencies['onlyAgent'];

  constructor({ operations, pending, parseAid: parse = parseAid, onlyAgent }: ToolTableDependencies) {
    this.#pending = pending;
    this.#onlyAgent = onlyAgent;
    for (const operation of operations) {
      const { tool } = operation.declaration;
      if (tool !== undefined) this.#tools.set(tool.name, toolOf(operation, tool, parse));
    }
  }

  /** All tools, in the order of the table. */
  list(): readonly ToolView[] {
    return [...this.#tools.values()].map(({ view }) => view);
  }

  has(name: string): boolean {
    return this.#tools.has(name);
  }

  /**
   * Calls a tool. The result contains the `pending` counters if there are any. If the local agent is omitted, the only
   * one acts.
   * @throws SvcError `not_found` for an unknown tool, `invalid_request`, `bad_aid`, `local_aid_required`, `local_only`,
   * and the errors of the operation
   */
  async call(name: string, args: Arguments, context: CallContext): Promise<unknown> {
    const tool = this.#tools.get(name);
    if (tool === undefined)
      throw new SvcError('not_found', {
        thing: 'tool',
        message: 'Unknown tool. The MCP request tools/list shows all tools.',
      });
    const { operation } = tool;
    if (operation.declaration.permission === 'local_only' && context.origin !== 'local')
      throw new SvcError('local_only');
    context.onTool?.(name);
    const output = await operation.run(this.#read(tool, args), context);
    if (!isObject(output) || output['pending'] !== undefined) return output;
    const pending = this.#pending();
    return Object.keys(pending).length === 0 ? output : { ...output, pending };
  }

  #read({ places, read, actsLocally }: Tool, args: Arguments): Arguments {
    const raw: Record<Part, Record<string, unknown>> = { params: {}, query: {}, body: {} };
    const unknown = Object.keys(args).filter((name) => !places.has(name));
    if (unknown.length > 0)
      throw unknownMembers(
        'args',
        unknown.map((name) => `/${name}`),
      );
    for (const [name, value] of Object.entries(args)) {
      const place = places.get(name);
      if (place !== undefined) raw[place.part][place.key] = value;
    }
    const isOmitted = (args[OWN_AGENT] ?? '') === '';
    if (actsLocally && isOmitted && this.#onlyAgent !== undefined) raw.params[OWN_AGENT] = this.#onlyAgent();
    try {
      return read(raw);
    } catch (error) {
      throw inToolTerms(error, places);
    }
  }
}
