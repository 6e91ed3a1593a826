/**
 * The client of the commands. It resolves labels to AIDs, and calls operations as tools if they are declared as tools.
 */
import type { TSchema } from 'typebox';
import { AID_FORMAT } from '../../foundation/domain/agents.ts';
import {
  type CallInput,
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
} from '../../operations/client.ts';
import { operations } from '../../operations/index.ts';
import { bodyInputKey, type Declaration, type OutputOf, type ToolDeclaration } from '../../operations/operation.ts';
import type { Aliases } from './aliases.ts';
import { resolveIds } from './resolve-ids.ts';

export type Operations = typeof operations;
export type OperationName = keyof Operations;
export type SvcClient = Client<Operations>;

type InputTable = { readonly [K in OperationName]: CallInput<Operations[K]> };
type AnswerTable = { readonly [K in OperationName]: OutputOf<Operations[K]> };

/** Inputs of operations, by name. An interface is computed once; an alias would be computed for each command. */
export interface Inputs extends InputTable {}
interface Answers extends AnswerTable {}
export type AnswerOf<N extends OperationName> = Answers[N];

type Input = Readonly<Record<string, unknown>>;
type Method = (input: Input, options?: CallOptions) => Promise<unknown>;

/** Groups of operations that are called as tools, because a tool result also lists pending items. */
const CALLED_AS_TOOLS: ReadonlySet<string> = new Set(['Chat', 'Groups']);

function isAid(schema: unknown): boolean {
  return typeof schema === 'object' && schema !== null && Reflect.get(schema, 'format') === AID_FORMAT;
}

/** Members of an operation's input that hold an AID or a list of AIDs. */
function aidKeys({ params, query, body }: Declaration): string[] {
  const held = ([, schema]: [string, TSchema]): boolean => isAid(schema) || isAid(Reflect.get(schema, 'items'));
  return [params, query, body].flatMap((part) =>
    Object.entries(part.properties)
      .filter(held)
      .map(([key]) => (part === body ? bodyInputKey(key, params) : key)),
  );
}

/** True if a tool accepts this input. Members that the tool omits are accepted only by the route. */
function takesAll({ omit = [] }: ToolDeclaration, input: Input): boolean {
  return omit.every((key) => input[key] === undefined);
}

async function translated(input: Input, keys: readonly string[], aliases: Aliases): Promise<Input> {
  const aidOf = async (value: unknown): Promise<unknown> => (typeof value === 'string' ? aliases.aid(value) : value);
  const changed: Record<string, unknown> = { ...input };
  for (const key of keys) {
    const value = input[key];
    changed[key] = Array.isArray(value) ? await Promise.all(value.map(aidOf)) : await aidOf(value);
  }
  return changed;
}

/** The client, which also resolves ID prefixes. @throws SvcError `invalid_request` if the address is not an HTTP URL */
export function cliClient(options: ClientOptions, aliases: Aliases): SvcClient {
  const client = createClient(options, operations);
  let whole: SvcClient | undefined;
  const methods = Object.entries<Declaration>(operations).map(([name, declaration]) => {
    const { tool, path, tag } = declaration;
    const isTool = tool !== undefined && (path === undefined || CALLED_AS_TOOLS.has(tag));
    const rest: Method = Reflect.get(client, name);
    const method: Method = (args, call) =>
      isTool && takesAll(tool, args) ? client.toolCall({ tool: tool.name, args }, call) : rest(args, call);
    const keys = aidKeys(declaration);
    return [
      name,
      async (input: Input = {}, call?: CallOptions) => {
        const named = await translated(input, keys, aliases);
        return method(await resolveIds(declaration, named, whole ?? client), call);
      },
    ];
  });
  whole = Object.fromEntries(methods) as SvcClient;
  return whole;
}
