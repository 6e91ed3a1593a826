/** Resolves ID prefixes in the input of operations. */
import { MAX_ENTRIES_PAGE } from '../../foundation/domain/groups.ts';
import { SHA256_PATTERN } from '../../foundation/domain/objects.ts';
import type { Client } from '../../operations/client.ts';
import type { operations } from '../../operations/index.ts';
import type { Declaration } from '../../operations/operation.ts';
import { type IdSource, LISTED_ID, resolveId } from './id-prefix.ts';

/** Number of recent group entries that are searched for a prefix. */
const LOOKED_UP_ENTRIES: number = 10 * MAX_ENTRIES_PAGE;
const MAX_OBJECTS = 1000;

const HASH = new RegExp(SHA256_PATTERN);

type SvcClient = Client<typeof operations>;
type Input = Readonly<Record<string, unknown>>;

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
export async function resolveIds(declaration: Declaration, input: Input, client: SvcClient): Promise<Input> {
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
  await change('object_id', HASH, {
    noun: 'object of this agent',
    command: '"svc object list"',
    ids: () => objects(client, changed),
  });
  await change('id', LISTED_ID, listOf(path, client, changed));
  return changed;
}
