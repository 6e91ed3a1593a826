/**
 * The client of the commands. It resolves labels to AIDs, and calls operations as tools if they are declared as tools.
 */
import type { TSchema } from 'typebox';
import { AID_FORMAT } from '../../foundation/domain/agents.ts';
import { MAX_ENTRIES_PAGE } from '../../foundation/domain/groups.ts';
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import { SvcError } from '../../foundation/errors.ts';
import { lazy } from '../../foundation/lazy.ts';
import { cleanPastedId } from '../../foundation/pasted.ts';
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
import { type Aliases, isIdPrefix, LISTED_ID, resolveId, uniquePrefixLength } from './names.ts';

// Existing IDs, for prefixes of IDs and for completion.

/** Number of recent group entries that are searched for a prefix. */
const LOOKED_UP_ENTRIES: number = 10 * MAX_ENTRIES_PAGE;
const MAX_OBJECTS = 1000;

/** Lists existing IDs. `aid` is the agent of the operation. */
type List = (client: SvcClient, aid: string, input: Input) => Promise<readonly Listed[]>;

interface Listed {
  readonly id: string;
  readonly about?: string | undefined;
  /** The agent that also stands for this ID, if no other one is listed for it. */
  readonly aid?: string | undefined;
}

/** A kind of ID: its name, the command that lists existing ones, and the requests. */
type IdKind = readonly [noun: string, command: string, list: List];

function textIn(input: Input, key: string): string {
  const value = input[key];
  return typeof value === 'string' ? value : '';
}

const listGroups: List = async (client, aid) => {
  const lists = [client.groupList({ aid }), client.groupInvitations({ aid })] as const;
  const [{ groups }, { invitations }] = await Promise.all(lists);
  return [...groups, ...invitations].map(({ group_id: id, title: about }) => ({ id, about }));
};

const listEntries: List = async (client, aid, input) => {
  const group_id = textIn(input, 'group_id');
  const { max_seq } = await client.groupHead({ aid, group_id });
  const found: { readonly id: string }[] = [];
  let after_seq = Math.max(0, max_seq - LOOKED_UP_ENTRIES);
  for (;;) {
    const page = await client.groupRead({ aid, group_id, after_seq });
    found.push(...page.entries.map(({ entry_id: id }) => ({ id })));
    if (!page.has_more) return found;
    after_seq = page.scanned_to_seq;
  }
};

const listObjects: List = async (client, aid) =>
  (await client.objectList({ aid, limit: MAX_OBJECTS })).objects.map(({ object_id: id, name: about }) => ({
    id,
    about,
  }));
const listTraces: List = async (client) =>
  (await client.traceList({ limit: MAX_TRACES })).traces.map(({ trace_id: id }) => ({ id }));
const listTunnels: List = async (client) =>
  (await client.tunnelList()).tunnels.map(({ id, listen, remote_aid }) => ({
    id,
    aid: remote_aid,
    about: `${listen} to ${remote_aid}`,
  }));
const listOffers: List = async (client, aid) =>
  (await client.fileOfferList({ aid })).offers.map(({ id, name: about }) => ({ id, about }));
const listOrigins: List = async (client) =>
  (await client.originList()).origins.map(({ id, url: about, remote_aid: aid }) => ({ id, about, aid }));
const listExposures: List = async (client) =>
  (await client.exposureList()).exposures.map(({ id, url: about, aid }) => ({ id, about, aid }));
const listRequests: List = async (client) =>
  (await client.accessRequests()).requests.map(({ id, caller: aid, kind, asked }) => ({
    id,
    aid,
    about: `${kind} ${asked}`.trimEnd(),
  }));
const listWebhooks: List = async (client) => {
  const { webhooks, mailboxes } = await client.pushList();
  return [...webhooks.map(({ id, url: about }) => ({ id, about })), ...mailboxes];
};

const ENTRY: IdKind = [`entry among the last ${LOOKED_UP_ENTRIES}`, 'svc group read', listEntries];

/** The kinds of members. */
const BY_MEMBER: Readonly<Record<string, IdKind>> = {
  group_id: ['group', 'svc group list', listGroups],
  entry_id: ENTRY,
  reply_to: ENTRY,
  trace_id: ['trace', 'svc trace', listTraces],
  object_id: ['object of this agent', 'svc object list', listObjects],
};

/** The kinds of the member `id`, by a part of the path of the operation. */
const BY_PATH: Readonly<Record<string, IdKind>> = {
  '/tunnel/': ['tunnel', 'svc tunnel status', listTunnels],
  '/file-offers/': ['offer', 'svc files list', listOffers],
  '/origins/': ['local address', 'svc origin list', listOrigins],
  '/exposures/': ['public address', 'svc expose list', listExposures],
  '/access/requests/': ['request', 'svc access requests', listRequests],
  '/push/': ['webhook or webhook URL', 'svc push list', listWebhooks],
  '/remote-admin/allow/': ['entry', 'svc admin status', async (client) => (await client.remoteAdminGet()).allow],
  '/remote-admin/deny/': ['entry', 'svc admin status', async (client) => (await client.remoteAdminGet()).deny],
  '/acl/allow/': ['entry', 'svc agents acl show', async (client, aid) => (await client.aclGet({ aid })).allow],
  '/acl/deny/': ['entry', 'svc agents acl show', async (client, aid) => (await client.aclGet({ aid })).deny],
};

/** The IDs that are completed: by the argument, with the first word of the command if it is `id`. */
export const COMPLETED_IDS: Readonly<Record<string, List>> = {
  group: listGroups,
  'link-or-group': listGroups,
  object: listObjects,
  request: listRequests,
  'tunnel id': listTunnels,
  'files id': listOffers,
  'origin id': listOrigins,
  'off id': listExposures,
  'push id': listWebhooks,
};

/**
 * The only ID of an agent, for a text that names one. Undefined for other texts.
 * @throws SvcError `not_found` without an ID of this agent, `invalid_request` with several
 */
async function idOfAgent(
  text: string,
  [noun, command]: IdKind,
  listed: readonly Listed[],
  aliases: Aliases,
): Promise<string | undefined> {
  if (isIdPrefix(text) || listed.every(({ aid }) => aid === undefined)) return undefined;
  const aid = await aliases.aid(text);
  const found = listed.filter((one) => one.aid === aid).map(({ id }) => id);
  const [only, ...others] = found;
  if (only === undefined)
    throw new SvcError('not_found', { message: `No ${noun} of "${text}". "${command}" lists them.` });
  if (others.length === 0) return only;
  const length = uniquePrefixLength(found);
  throw new SvcError('invalid_request', {
    message: `"${text}" stands for ${found.length} IDs: ${found.map((id) => id.slice(0, length)).join(', ')}. Give one.`,
  });
}

/**
 * The input of an operation with complete IDs.
 * @throws SvcError as `resolveId` and `idOfAgent`
 */
async function resolveIds(declaration: Declaration, input: Input, client: SvcClient, aliases: Aliases): Promise<Input> {
  const { params, query, body, path = '' } = declaration;
  const changed: Record<string, unknown> = { ...input };
  const ofPath = Object.entries(BY_PATH).find(([part]) => path.includes(part));
  for (const [key, kind] of Object.entries({ ...BY_MEMBER, id: ofPath?.[1] })) {
    const value = changed[key];
    const isMember = [params, query, body].some((part) => Object.hasOwn(part.properties, key));
    if (kind === undefined || typeof value !== 'string' || !isMember) continue;
    const [noun, command, list] = kind;
    const whole = key === 'id' ? LISTED_ID : new RegExp(key === 'trace_id' ? TRACE_ID_PATTERN : SHA256_PATTERN);
    const listed = lazy(() => list(client, textIn(changed, 'aid'), changed));
    const ids = async () => (await listed()).map(({ id }) => id);
    const isId = whole.test(cleanPastedId(value).toLowerCase());
    const named = isId || key !== 'id' ? undefined : await idOfAgent(value, kind, await listed(), aliases);
    changed[key] = named ?? (await resolveId(value, whole, { noun, command: `"${command}"`, ids }));
  }
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
        const complete = await resolveIds(declaration, named, whole ?? client, aliases);
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
