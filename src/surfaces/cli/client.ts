/**
 * The client of the commands. It resolves labels to AIDs, and calls operations as tools if they are declared as tools.
 */
import type { TSchema } from 'typebox';
import { AID_FORMAT } from '../../foundation/domain/agents.ts';
import { MAX_ENTRIES_PAGE } from '../../foundation/domain/groups.ts';
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import { MAX_TRACES, TRACE_ID_PATTERN } from '../../foundation/traces/trace-context.ts';
import {
  type CallInput,
  type CallOptions,
  type Client,
  type ClientOptions,
  createClient,
} from '../../operations/client.ts';
import { operations } from '../../operations/index.ts';
import { bodyInputKey, type Declaration, type OutputOf, type ToolDeclaration } from '../../operations/operation.ts';
import { type Aliases, type IdSource, LISTED_ID, resolveId } from './names.ts';

// Resolves ID prefixes in the input of operations.

/** Number of recent group entries that are searched for a prefix. */
const LOOKED_UP_ENTRIES: number = 10 * MAX_ENTRIES_PAGE;
const MAX_OBJECTS = 1000;

const HASH = new RegExp(SHA256_PATTERN);
const TRACE = new RegExp(TRACE_ID_PATTERN);

function textIn(input: Input, key: string): string {
  const value = input[key];
  return typeof value === 'string' ? value : '';
}

async function groups(client: SvcClient, input: Input): Promise<string[]> {
  const aid = textIn(input, 'aid');
  const [{ groups: joined }, { invitations }] = await Promise.all([
    client.groupList({ aid }),
    client.groupInvitations({ aid }),
  ]);
  return [...joined, ...invitations].map(({ group_id }) => group_id);
}

async function entries(client: SvcClient, input: Input): Promise<string[]> {
  const [aid, group_id] = [textIn(input, 'aid'), textIn(input, 'group_id')];
  const { max_seq } = await client.groupHead({ aid, group_id });
  const ids: string[] = [];
  let after_seq = Math.max(0, max_seq - LOOKED_UP_ENTRIES);
  for (;;) {
    const page = await client.groupRead({ aid, group_id, after_seq });
    ids.push(...page.entries.map(({ entry_id }) => entry_id));
    if (!page.has_more) return ids;
    after_seq = page.scanned_to_seq;
  }
}

async function objects(client: SvcClient, input: Input): Promise<string[]> {
  const page = await client.objectList({ aid: textIn(input, 'aid'), limit: MAX_OBJECTS });
  return page.objects.map(({ object_id }) => object_id);
}

/** The kind of an `id`, by the path of the operation. */
function listOf(path: string, client: SvcClient, input: Input): IdSource | null {
  const ofAccess = async (): Promise<string[]> => {
    const { allow, deny } = path.startsWith('/node')
      ? await client.remoteAdminGet()
      : await client.aclGet({ aid: textIn(input, 'aid') });
    return (path.includes('/allow/') ? allow : deny).map(({ id }) => id);
  };
  if (path.startsWith('/tunnel/'))
    return {
      noun: 'tunnel',
      command: '"svc tunnel status"',
      ids: async () => (await client.tunnelList()).tunnels.map(({ id }) => id),
    };
  if (path.includes('/file-offers/'))
    return {
      noun: 'offer',
      command: '"svc files list"',
      ids: async () => (await client.fileOfferList({ aid: textIn(input, 'aid') })).offers.map(({ id }) => id),
    };
  if (path.startsWith('/origins/'))
    return {
      noun: 'local address',
      command: '"svc origin list"',
      ids: async () => (await client.originList()).origins.map(({ id }) => id),
    };
  if (path.startsWith('/push/'))
    return {
      noun: 'webhook or webhook URL',
      command: '"svc push list"',
      ids: async () => {
        const { webhooks, mailboxes } = await client.pushList();
        return [...webhooks, ...mailboxes].map(({ id }) => id);
      },
    };
  if (path.startsWith('/node/remote-admin/')) return { noun: 'entry', command: '"svc admin status"', ids: ofAccess };
  return path.includes('/acl/') ? { noun: 'entry', command: '"svc agents acl show"', ids: ofAccess } : null;
}

/**
 * The input of an operation with complete IDs.
 * @throws SvcError as `idFor`
 */
async function resolveIds(declaration: Declaration, input: Input, client: SvcClient): Promise<Input> {
  const { params, query, body, path = '' } = declaration;
  const has = (key: string): boolean => [params, query, body].some((part) => Object.hasOwn(part.properties, key));
  const changed: Record<string, unknown> = { ...input };
  const change = async (key: string, whole: RegExp, listed: IdSource | null): Promise<void> => {
    const value = changed[key];
    if (listed !== null && typeof value === 'string' && has(key)) changed[key] = await resolveId(value, whole, listed);
  };
  const entry: IdSource = {
    noun: `entry among the last ${LOOKED_UP_ENTRIES}`,
    command: '"svc group read"',
    ids: () => entries(client, changed),
  };
  await change('group_id', HASH, {
    noun: 'group',
    command: '"svc group list"',
    ids: () => groups(client, changed),
  });
  await change('entry_id', HASH, entry);
  await change('reply_to', HASH, entry);
  await change('trace_id', TRACE, {
    noun: 'trace',
    command: '"svc trace"',
    ids: async () => (await client.traceList({ limit: MAX_TRACES })).traces.map(({ trace_id }) => trace_id),
  });
  await change('object_id', HASH, {
    noun: 'object of this agent',
    command: '"svc object list"',
    ids: () => objects(client, changed),
  });
  await change('id', LISTED_ID, listOf(path, client, changed));
  return changed;
}

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

interface CliClientParts {
  readonly aliases: Aliases;
  /** Asks which of several local agents acts. @throws SvcError `local_aid_required` */
  readonly chooseAgent: () => Promise<string>;
}

/**
 * The client, which also resolves ID prefixes, and asks if the daemon cannot choose between several local agents.
 * @throws SvcError `invalid_request` if the address is not an HTTP URL
 */
export function cliClient(options: ClientOptions, { aliases, chooseAgent }: CliClientParts): SvcClient {
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
        const complete = await resolveIds(declaration, named, whole ?? client);
        return method(complete, call).catch(async (error: unknown) => {
          // The daemon has done nothing.
          if (!(error instanceof SvcError) || error.code !== 'local_aid_required') throw error;
          return method({ ...complete, local_aid: await chooseAgent() }, call);
        });
      },
    ];
  });
  whole = Object.fromEntries(methods) as SvcClient;
  return whole;
}
