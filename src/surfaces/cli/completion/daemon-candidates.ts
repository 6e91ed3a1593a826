/** Candidates from the daemon: labels, agents, groups, tunnels, services, objects. */
import { CONFIG_KEYS, ConfigSchema, PATCHABLE_KEYS } from '../../../foundation/config/schema.ts';
import { memberOf } from '../../../foundation/json.ts';
import { labelsOf } from '../../../foundation/labels.ts';
import { COMPLETED_IDS } from '../client.ts';
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

async function services({ client }: CliContext): Promise<Candidate[]> {
  const { agents } = await client.agentsList();
  return agents.flatMap(({ aid, services: offered }) => offered.map((word) => ({ word, about: aid })));
}

/** Values of a configuration key: all of a closed set, or its default. */
function settingValues(key: string): Candidate[] {
  const schema = memberOf(ConfigSchema.properties, key);
  const [choices, type, value] = [memberOf(schema, 'enum'), memberOf(schema, 'type'), memberOf(schema, 'default')];
  const usual = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean' ? `${value}` : '';
  const about = (word: string): string => (word === usual ? 'the default' : '');
  const words = Array.isArray(choices) ? choices.map(String) : type === 'boolean' ? ['true', 'false'] : [];
  return (words.length > 0 || usual === '' ? words : [usual]).map((word) => ({ word, about: about(word) }));
}

/** Candidates for a place, by the name of its argument. Empty if the daemon has none of that kind. */
export async function daemonCandidates(
  { path, taking, given, before }: CursorPlace,
  context: CliContext,
): Promise<readonly Candidate[]> {
  const name = taking?.name() ?? '';
  if (OWN_AIDS.has(name)) return ownAids(context);
  if (AIDS.has(name)) return aids(context);
  const list = COMPLETED_IDS[name === 'id' ? `${path.split(' ')[0]} id` : name];
  if (list !== undefined) {
    const ofAgent = name !== 'id' || path.startsWith('files');
    const found = await list(context.client, ofAgent ? await context.localAgent(given['as'] ?? given['aid']) : '', {});
    const length = uniquePrefixLength(found.map(({ id }) => id));
    return found.map(({ id, about = '' }) => ({ word: id.slice(0, length), about }));
  }
  if (name === 'service') return services(context);
  if (name === 'label' && path === 'alias rm')
    return labelsOf(await context.client.addressBookGet()).map(([word, about]) => ({ word, about }));
  if (path === 'config set' && name === 'value') return settingValues(before[0] ?? '');
  if (name !== 'key' || !path.startsWith('config')) return [];
  return [...(path === 'config set' ? PATCHABLE_KEYS : CONFIG_KEYS)].map((word) => ({ word, about: '' }));
}
