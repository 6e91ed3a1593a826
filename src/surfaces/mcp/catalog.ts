/** The tool table in the format of MCP. */
import type { Tool } from '@modelcontextprotocol/server';
import type { TSchema } from 'typebox';
import { AID_FORMAT } from '../../foundation/domain/agents.ts';
import { SERVICE_NAME_FORMAT } from '../../foundation/domain/directory.ts';
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import { isObject } from '../../foundation/json.ts';
import { MCP_PROFILES, type McpProfile } from '../../operations/mcp.ts';
import { BASE64_TEXT } from '../../operations/schemas.ts';
import type { ToolTable, ToolView } from '../../operations/tool-call.ts';

/** Create and publish an identity, find others and call them: the main tasks. */
const CORE = [
  'svc_status',
  'svc_identity_generate',
  'svc_agent_register',
  'svc_agents_list',
  'svc_address_book',
  'svc_agent_patch',
  'svc_agent_publish',
  'svc_service_register',
  'svc_discover',
  'svc_resolve',
  'svc_fetch',
  'svc_events_poll',
];

/** Everyday work with few tokens: the core, messages, files and groups. */
const LEAN = [
  ...CORE,
  'svc_mailbox_',
  'svc_file_',
  'chat_request',
  'chat_accept',
  'chat_send',
  'chat_read',
  'chat_contacts',
  'chat_mark_read',
  'group_create',
  'group_list',
  'group_invite',
  'group_join',
  'group_read',
  'group_append',
  'group_mark_read',
];

/** The tools of each profile: names, or prefixes that end with `_`. */
const TOOLS: Readonly<Record<McpProfile, readonly string[]>> = {
  full: ['svc_', 'chat_', 'group_'],
  lean: LEAN,
  core: CORE,
  calls: [...CORE, 'svc_connect', 'svc_tunnel_', 'svc_origin_'],
  mail: [...CORE, 'svc_mailbox_', 'svc_file_'],
  chat: [...CORE, 'chat_'],
  groups: [...CORE, 'group_'],
};

function matches(name: string, pattern: string): boolean {
  return pattern.endsWith('_') ? name.startsWith(pattern) : name === pattern;
}

function isProfile(text: string): text is McpProfile {
  return MCP_PROFILES.some((name) => name === text);
}

/** True if the list contains no schemas of results, which most programs do not show to their model. */
function isLean(profiles: string | undefined): boolean {
  return profiles?.split(',').includes('lean') ?? false;
}

/** True if a tool is shown. `profiles`: names separated by commas; all tools if omitted. */
export function isShown(tool: string, profiles = 'full'): boolean {
  const patterns = profiles.split(',').flatMap((name) => (isProfile(name) ? TOOLS[name] : []));
  return patterns.some((pattern) => matches(tool, pattern));
}

// Shortens schemas: an assistant pays for every word of the tool list in every conversation.

type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * Keywords that an output schema does not need. Results may have more members: `pending`, and the mark of foreign text.
 */
const OUTPUT_NOISE: ReadonlySet<string> = new Set([
  'required',
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

/** Converts `anyOf` of constants to `enum`. */
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

/** Values of a member of a result that the list names. A longer list is only a text: results show its values. */
const MAX_OUTPUT_VALUES = 6;
/** Depth of the items of lists in a result. Deeper objects are not described. */
const MAX_OUTPUT_DEPTH = 2;

function hasMembers(schema: JsonSchema): boolean {
  return schema['type'] === 'object' && isObject(schema['properties']);
}

/** The types of a union of types without further members, such as a text or null. */
function plainTypes(anyOf: unknown, depth: number): readonly unknown[] | undefined {
  if (!Array.isArray(anyOf)) return undefined;
  const isPlain = (one: unknown) =>
    isObject(one) && !('items' in one) && !isConstant(one) && (depth > MAX_OUTPUT_DEPTH || !hasMembers(one));
  return anyOf.every(isPlain) ? anyOf.map((one: JsonSchema) => one['type']) : undefined;
}

/** The type of a constant is implied by its value. */
function isConstant(schema: JsonSchema): boolean {
  return 'const' in schema || 'enum' in schema;
}

/** The schema of a result: names and types of its members, and of the items of its lists if these have members. */
function compactOutput(schema: TSchema): JsonSchema {
  const { properties, ...rest } = plain(schema);
  const top = isObject(properties) ? members(properties, (one) => (hasMembers(one) ? { type: 'object' } : one)) : {};
  return walk({ ...rest, properties: top }, (one, depth) => {
    if (depth > MAX_OUTPUT_DEPTH && one['type'] === 'object') return { type: 'object' };
    const { items } = one;
    if (isObject(items) && !hasMembers(items) && !('anyOf' in items)) return { type: 'array' };
    const { enum: values = one['anyOf'] } = one;
    if (Array.isArray(values) && values.length > MAX_OUTPUT_VALUES) return { type: 'string' };
    const types = plainTypes(one['anyOf'], depth);
    // Some clients do not support a list of types.
    if (types !== undefined) return { anyOf: types.map((type) => ({ type })) };
    const noise = (key: string) => OUTPUT_NOISE.has(key) || (key === 'type' && isConstant(one));
    return Object.fromEntries(Object.entries(one).filter(([key]) => !noise(key)));
  });
}

/** True if the parameter name, its type or the server instructions already express the description. */
function isDescribedElsewhere(schema: JsonSchema): boolean {
  const { format, pattern, contentEncoding, description } = schema;
  if (contentEncoding === 'base64') return description === BASE64_TEXT;
  return format === AID_FORMAT || format === 'date-time' || pattern === SHA256_PATTERN;
}

/** Larger limits are those of a format, such as a time. */
const LARGEST_LIMIT = 2 ** 32;

/** True for a limit or default that a model assumes anyway: no negative numbers, and zero or false by default. */
function isUsual(key: string, value: unknown): boolean {
  if (key === 'maximum') return typeof value === 'number' && value > LARGEST_LIMIT;
  return (key === 'minimum' && value === 0) || (key === 'default' && (value === 0 || value === false));
}

/** The schema of arguments: limits, and descriptions that add information. */
function compactInput({ additionalProperties, ...schema }: JsonSchema): JsonSchema {
  const { properties } = schema;
  const hasParameters = isObject(properties) && Object.keys(properties).length > 0;
  // svcd rejects unknown arguments, and names them.
  return walk(plain(hasParameters ? schema : { ...schema, additionalProperties }), (one) => {
    const known = Object.entries(one).filter(([key, value]) => !isUsual(key, value));
    const { format, description, ...rest } = Object.fromEntries(known);
    return {
      ...rest,
      ...(format === undefined || format === SERVICE_NAME_FORMAT || format === AID_FORMAT ? {} : { format }),
      ...(description === undefined || isDescribedElsewhere(one) ? {} : { description }),
    };
  });
}

/**
 * Annotations of the protocol that differ from their defaults: a tool may write, destroy, and communicate with others. A
 * tool that only reads destroys nothing.
 */
function annotationsOf(view: ToolView): NonNullable<Tool['annotations']> {
  const { readOnly, destructive, idempotent, openWorld } = view;
  return {
    ...(readOnly ? { readOnlyHint: true } : {}),
    ...(readOnly || destructive ? {} : { destructiveHint: false }),
    ...(idempotent && !readOnly ? { idempotentHint: true } : {}),
    ...(openWorld ? {} : { openWorldHint: false }),
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
    const shown = this.#tools.filter(({ name }) => isShown(name, profiles));
    return isLean(profiles) ? shown.map(({ outputSchema: _results, ...tool }) => tool) : shown;
  }

  /** A tool of the given profiles. */
  find(name: string, profiles: string | undefined): ToolView | undefined {
    return isShown(name, profiles) ? this.#views.get(name) : undefined;
  }
}
