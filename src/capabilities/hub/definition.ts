/** Definitions of tools: the members that a model may see, their canonical JSON and its hash. */
import { createHash } from 'node:crypto';
import { canonicalJson } from '../../foundation/cards/canonical-json.ts';
import { type HubToolKind, MAX_HUB_DEFINITION_BYTES, MAX_HUB_NAME_CHARS } from '../../foundation/domain/hub.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { isObject, parseJson } from '../../foundation/json.ts';

type Values = Readonly<Record<string, unknown>>;

/** The members of a tool that the hub keeps. Icons and `_meta` are not for models. */
export interface ToolDefinition {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema: Values;
  readonly outputSchema?: Values;
  readonly annotations?: Values;
}

/** A definition that can be stored. */
export interface NewDefinition {
  readonly kind: HubToolKind;
  readonly name: string;
  /** Canonical JSON of a `ToolDefinition`. */
  readonly json: string;
  /** SHA-256 in hex of the agent, the kind and the canonical JSON. */
  readonly hash: string;
}

/** Names without blanks, quotes and control characters. They are parts of references and must not read as sentences. */
const NAME = new RegExp(`^[A-Za-z0-9_.:/-]{1,${MAX_HUB_NAME_CHARS}}$`);

function textOrNothing(value: unknown, key: 'title' | 'description'): Values {
  return typeof value === 'string' && value !== '' ? { [key]: value } : {};
}

/**
 * The definition of a tool as its server lists it.
 * @returns null if it has no valid name or schema, or is too large
 */
export function defineTool(aid: Aid, kind: HubToolKind, listed: unknown): NewDefinition | null {
  if (!isObject(listed)) return null;
  const { name, title, description, inputSchema, outputSchema, annotations } = listed;
  if (typeof name !== 'string' || !NAME.test(name) || !isObject(inputSchema)) return null;
  const kept: ToolDefinition = {
    name,
    ...textOrNothing(title, 'title'),
    ...textOrNothing(description, 'description'),
    inputSchema,
    ...(isObject(outputSchema) ? { outputSchema } : {}),
    ...(isObject(annotations) ? { annotations } : {}),
  };
  try {
    const written = JSON.stringify(kept);
    if (Buffer.byteLength(written) > MAX_HUB_DEFINITION_BYTES) return null;
    // Rejects deep nesting and keys that damage objects.
    const json = canonicalJson(parseJson(written));
    if (Buffer.byteLength(json) > MAX_HUB_DEFINITION_BYTES) return null;
    const hash = createHash('sha256').update(`${aid}\n${kind}\n${json}`).digest('hex');
    return { kind, name, json, hash };
  } catch (error) {
    if (error instanceof SvcError || error instanceof RangeError) return null;
    throw error;
  }
}

/** Reads a stored definition. */
export function readDefinition(json: string): ToolDefinition {
  return JSON.parse(json) as ToolDefinition;
}

/** Parameters that a summary and the search index use. */
const MAX_PARAMETERS = 32;
/** Parameters that a summary names. */
const MAX_NAMED = 8;
/** Longest part of a text that the search index contains, characters. */
const MAX_INDEXED_CHARS = 2_000;

function propertiesOf({ inputSchema }: ToolDefinition): [string, unknown][] {
  const { properties } = inputSchema;
  return isObject(properties) ? Object.entries(properties).slice(0, MAX_PARAMETERS) : [];
}

/** The parameters in short: `to, subject, cc?`. */
export function parameterSummary(definition: ToolDefinition): string {
  const { required } = definition.inputSchema;
  const needed = new Set<unknown>(Array.isArray(required) ? required : []);
  const names = propertiesOf(definition).map(([name]) => name);
  const ordered = [...names.filter((name) => needed.has(name)), ...names.filter((name) => !needed.has(name))];
  const shown = ordered.slice(0, MAX_NAMED).map((name) => `${name.slice(0, 40)}${needed.has(name) ? '' : '?'}`);
  return [...shown, ...(ordered.length > MAX_NAMED ? ['…'] : [])].join(', ');
}

/** Separates the words in a name: `createIssue`, `create_issue`. */
export function spaced(name: string): string {
  return name.replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2').replaceAll(/[^\p{L}\p{N}]+/gu, ' ');
}

/** The texts of a tool for the search index. */
export function indexTexts(definition: ToolDefinition) {
  const parameters = propertiesOf(definition).map(([name, schema]) => {
    const description = isObject(schema) && typeof schema['description'] === 'string' ? schema['description'] : '';
    return `${spaced(name)} ${description.slice(0, 200)}`;
  });
  return {
    name: spaced(definition.name),
    title: (definition.title ?? '').slice(0, MAX_INDEXED_CHARS),
    description: (definition.description ?? '').slice(0, MAX_INDEXED_CHARS),
    parameters: parameters.join(' ').slice(0, MAX_INDEXED_CHARS),
  };
}
