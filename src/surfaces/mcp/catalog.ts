/** The tool table in the format of MCP. */
import type { Tool } from '@modelcontextprotocol/server';
import type { TSchema } from 'typebox';
import { AID_FORMAT } from '../../foundation/domain/agents.ts';
import { SERVICE_NAME_FORMAT } from '../../foundation/domain/directory.ts';
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import { isObject } from '../../foundation/json.ts';
import { MCP_PROFILES, type McpProfile } from '../../operations/mcp.ts';
import type { ToolTable, ToolView } from '../../operations/tool-call.ts';

// The tools of each profile: the core tools, and tools of its field.

/** Create and publish an identity, find others and call them: the main tasks. */
const CORE = [
  'svc_status',
  'svc_identity_generate',
  'svc_agent_register',
  'svc_agents_list',
  'svc_agent_patch',
  'svc_agent_publish',
  'svc_service_register',
  'svc_discover',
  'svc_resolve',
  'svc_fetch',
  'svc_events_poll',
];

/** Tool names, or prefixes that end with `_`. */
const ADDED: Readonly<Record<McpProfile, readonly string[]>> = {
  core: [],
  calls: ['svc_connect', 'svc_tunnel_', 'svc_origin_'],
  mail: ['svc_mailbox_', 'svc_file_'],
  chat: ['chat_'],
  rooms: ['group_'],
};

function matches(name: string, pattern: string): boolean {
  return pattern.endsWith('_') ? name.startsWith(pattern) : name === pattern;
}

function isProfile(text: string): text is McpProfile {
  return MCP_PROFILES.some((name) => name === text);
}

/** True if a tool is shown. `profiles`: names separated by commas; all tools if omitted. */
export function isShown(tool: string, profiles: string | undefined): boolean {
  if (profiles === undefined) return true;
  const patterns = [...CORE, ...profiles.split(',').flatMap((name) => (isProfile(name) ? ADDED[name] : []))];
  return patterns.some((pattern) => matches(tool, pattern));
}

// Shortens schemas: an assistant pays for every word of the tool list in every conversation.

type JsonSchema = Readonly<Record<string, unknown>>;

/** Nesting depth of output schemas. Deeper objects are not described. */
const MAX_OUTPUT_DEPTH = 2;

/**
 * Keywords that an output schema does not need. Results may have more members: `pending`, and the mark of foreign text.
 */
const OUTPUT_NOISE: ReadonlySet<string> = new Set([
  'description',
  'format',
  'contentEncoding',
  'default',
  'minimum',
  'maximum',
  'minLength',
  'maxLength',
  'minItems',
  'maxItems',
  'pattern',
  'patternProperties',
  'additionalProperties',
]);

function plain(schema: TSchema | JsonSchema): JsonSchema {
  return JSON.parse(JSON.stringify(schema)) as JsonSchema;
}

/**
 * Converts `anyOf` of constants to `enum`. Other unions stay: type lists are shorter, but not all clients support them.
 */
function shortUnion(options: readonly unknown[]): JsonSchema | undefined {
  const objects = options.filter(isObject);
  return objects.every((one) => 'const' in one) ? { enum: objects.map((one) => one['const']) } : undefined;
}

function members(schema: JsonSchema, change: (value: JsonSchema) => JsonSchema): JsonSchema {
  return Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, isObject(value) ? change(value) : value]),
  );
}

function walk(schema: JsonSchema, change: (schema: JsonSchema, depth: number) => JsonSchema, depth = 1): JsonSchema {
  const result: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(change(schema, depth))) {
    if (key === 'properties' || key === 'patternProperties')
      result[key] = isObject(value) ? members(value, (one) => walk(one, change, depth + 1)) : value;
    else if (Array.isArray(value) && key === 'anyOf')
      result[key] = value.map((one: unknown) => (isObject(one) ? walk(one, change, depth) : one));
    else result[key] = isObject(value) && key === 'items' ? walk(value, change, depth) : value;
  }
  const { anyOf, ...rest } = result;
  const short = Array.isArray(anyOf) ? shortUnion(anyOf) : undefined;
  return short === undefined ? result : { ...rest, ...short };
}

/** The type of a constant is implied by its value. */
function isConstant(schema: JsonSchema): boolean {
  return 'const' in schema || 'enum' in schema;
}

/** The schema of a result: names, types, and required top-level members. */
function compactOutput(schema: TSchema): JsonSchema {
  return walk(plain(schema), (one, depth) => {
    if (depth > MAX_OUTPUT_DEPTH && one['type'] === 'object') return { type: 'object' };
    const noise = (key: string) =>
      OUTPUT_NOISE.has(key) || (key === 'type' && isConstant(one)) || (key === 'required' && depth > 1);
    return Object.fromEntries(Object.entries(one).filter(([key]) => !noise(key)));
  });
}

/** True if the parameter name, its pattern or the server instructions already express the description. */
function isDescribedElsewhere(schema: JsonSchema): boolean {
  return schema['format'] === AID_FORMAT || schema['pattern'] === SHA256_PATTERN;
}

/** The schema of arguments: all limits, and descriptions that add information. */
function compactInput(schema: JsonSchema): JsonSchema {
  return walk(plain(schema), (one) => {
    if (one['format'] === SERVICE_NAME_FORMAT) {
      const { format: _ours, ...known } = one;
      return known;
    }
    if (!isDescribedElsewhere(one)) return one;
    const { format: _format, description: _description, ...rest } = one;
    return rest;
  });
}

/** Annotations of the protocol. The idempotent hint is omitted if it has its default, and for read-only tools. */
function annotationsOf(view: ToolView): NonNullable<Tool['annotations']> {
  return {
    readOnlyHint: view.readOnly,
    destructiveHint: view.destructive,
    ...(view.idempotent && !view.readOnly ? { idempotentHint: true } : {}),
    openWorldHint: view.openWorld,
  };
}

function listed(view: ToolView): Tool {
  return {
    name: view.name,
    description: view.description,
    inputSchema: { ...compactInput({ ...view.inputSchema }), type: 'object' },
    outputSchema: { ...compactOutput(view.outputSchema), type: 'object' },
    annotations: annotationsOf(view),
  };
}

/** Computed once: the table does not change while the daemon runs. */
export class ToolCatalog {
  readonly table: ToolTable;
  readonly #tools: readonly Tool[];
  readonly #views: ReadonlyMap<string, ToolView>;

  constructor(table: ToolTable) {
    this.table = table;
    this.#tools = table.list().map(listed);
    this.#views = new Map(table.list().map((view) => [view.name, view]));
  }

  /** The tools of the given profiles, or all tools. */
  list(profiles: string | undefined): Tool[] {
    return this.#tools.filter(({ name }) => isShown(name, profiles));
  }

  /** A tool of the given profiles. */
  find(name: string, profiles: string | undefined): ToolView | undefined {
    return isShown(name, profiles) ? this.#views.get(name) : undefined;
  }
}
