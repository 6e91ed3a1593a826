/** Candidates from the daemon: labels, agents, groups, tunnels, services, objects. */
import { CONFIG_KEYS, PATCHABLE_KEYS } from '../../../foundation/config/schema.ts';
import { labelsOf } from '../../../foundation/labels.ts';
import type { CliContext } from '../context.ts';
import { uniquePrefixLength } from '../names.ts';
import type { Candidate, CursorPlace } from './complete.ts';

/** Names of arguments and options with an AID. */
const AIDS: ReadonlySet<string> = new Set([
  ...['aid', 'agent', 'peer', 'local', 'remote', 'member'],
  ...['via', 'creator', 'inviter', 'hint', 'author', 'to', 'from'],
]);
/** Names of arguments and options with a local agent. */
const OWN_AIDS: ReadonlySet<string> = new Set(['as', 'local-aid', 'via-as']);

function shortened(ids: readonly { readonly id: string; readonly about: string }[]): Candidate[] {
  const length = uniquePrefixLength(ids.map(({ id }) => id));
  return ids.map(({ id, about }) => ({ word: id.slice(0, length), about }));
}

async function aids({ client, local }: CliContext): Promise<Candidate[]> {
  const [{ aliases }, { agents }] = await Promise.all([local.addressBookGet(), client.agentsList()]);
  return [
    ...Object.entries(aliases).map(([aid, label]) => ({ word: label, about: aid })),
    ...agents.flatMap(({ aid, name }) => (aid in aliases ? [] : [{ word: aid, about: name ?? 'a local agent' }])),
  ];
}

/** Local agents, by label if they have one. */
async function ownAids({ client, local }: CliContext): Promise<Candidate[]> {
  const [{ aliases }, { agents }] = await Promise.all([local.addressBookGet(), client.agentsList()]);
  return agents.map(({ aid, name }) => {
    const label = aliases[aid];
    return label === undefined ? { word: aid, about: name ?? 'a local agent' } : { word: label, about: aid };
  });
}

async function groups(context: CliContext, aid: string | undefined): Promise<Candidate[]> {
  const found = await context.client.groupList({ aid: await context.localAgent(aid) });
  return shortened(found.groups.map(({ group_id: id, title: about }) => ({ id, about })));
}

async function objects(context: CliContext, aid: string | undefined): Promise<Candidate[]> {
  const found = await context.client.objectList({ aid: await context.localAgent(aid) });
  return shortened(found.objects.map(({ object_id: id, name: about }) => ({ id, about })));
}

async function offers(context: CliContext, aid: string | undefined): Promise<Candidate[]> {
  const found = await context.client.fileOfferList({ aid: await context.localAgent(aid) });
  return shortened(found.offers.map(({ id, name: about }) => ({ id, about })));
}

async function tunnels({ client }: CliContext): Promise<Candidate[]> {
  const found = await client.tunnelList();
  return shortened(found.tunnels.map(({ id, listen, remote_aid }) => ({ id, about: `${listen} to ${remote_aid}` })));
}

async function services({ client }: CliContext): Promise<Candidate[]> {
  const { agents } = await client.agentsList();
  return agents.flatMap(({ aid, services: offered }) => offered.map((word) => ({ word, about: aid })));
}

/** Candidates for a place, by the name of its argument. Empty if the daemon has none of that kind. */
export async function daemonCandidates(
  { path, taking, given }: CursorPlace,
  context: CliContext,
): Promise<readonly Candidate[]> {
  const name = taking?.name() ?? '';
  if (OWN_AIDS.has(name)) return ownAids(context);
  if (AIDS.has(name)) return aids(context);
  const acting = given['as'] ?? given['aid'];
  if (name === 'group' || name === 'link-or-group') return groups(context, acting);
  if (name === 'object') return objects(context, acting);
  if (name === 'service') return services(context);
  if (name === 'label' && path === 'alias del')
    return labelsOf(await context.client.addressBookGet()).map(([word, about]) => ({ word, about }));
  if (name === 'id' && path.startsWith('tunnel')) return tunnels(context);
  if (name === 'id' && path.startsWith('files')) return offers(context, acting);
  if (name === 'id' && path.startsWith('origin'))
    return (await context.client.originList()).origins.map(({ id, url }) => ({ word: id, about: url }));
  if (name === 'id' && path.startsWith('push'))
    return (await context.client.pushList()).webhooks.map(({ id, url }) => ({ word: id, about: url }));
  if (name !== 'key' || !path.startsWith('config')) return [];
  return [...(path === 'config set' ? PATCHABLE_KEYS : CONFIG_KEYS)].map((word) => ({ word, about: '' }));
}
