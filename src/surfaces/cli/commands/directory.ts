/** `svc unpublish`, `search`, `info`, `resolve`: services and endpoints of agents. */

import { relativeTime } from '../../../foundation/display-text.ts';
import { natLabel } from '../../../foundation/domain/directory.ts';
import { RECORD } from '../../../foundation/records/types.ts';
import type { CommandGroup } from '../command-group.ts';
import { integer, namedAgent, repeatable } from '../options.ts';
import { formatFields, formatTable } from '../text.ts';

const RECORD_NAMES: Readonly<Record<number, string>> = {
  [RECORD.endpoints]: 'endpoints',
  [RECORD.profile]: 'profile',
  [RECORD.encryptionKeys]: 'note keys',
};

/** A record type as the protocol writes it, with its content if known. */
function recordName(type: number): string {
  const number = `0x${type.toString(16).padStart(2, '0')}`;
  const name = RECORD_NAMES[type];
  return name === undefined ? number : `${number} (${name})`;
}

/** Output after a service was withdrawn. */
export const WITHDRAWN_OUTPUT = {
  text: (_: unknown, { service }: { readonly service: string }) =>
    `${service} is no longer renewed. Its record expires.`,
  quiet: (_: unknown, { service }: { readonly service: string }) => service,
};

export function directoryCommands(svc: CommandGroup): void {
  const unpublish = 'stop renewing a service, so that its record expires';
  svc.acting().call('serviceUnregister', 'unpublish <service>', unpublish, WITHDRAWN_OUTPUT);
  svc.run('search', 'find agents that offer a service', {
    examples: ['svc search lang.translate', 'svc search lang.translate --filter-tag fast --quiet'],
    options: {
      '<service...>': 'one or more complete service names',
      '--filter-protocol <name>': repeatable('only agents with this protocol; repeatable, any match'),
      '--filter-tag <name>': repeatable('only agents with this tag; repeatable, all must match'),
      '--limit <n>': integer('maximum number of results'),
      '--aid <aid>': namedAgent('the local agent that searches; the result does not depend on it'),
    },
    progress: 'Searching',
    run: async (context, { service: services, filter_protocol: protocols = [], filter_tag: tags = [], limit, aid }) => {
      // The node searches, so the agent is only checked.
      if (aid !== undefined) await context.withLocalAgentHint(context.client.agentGet({ aid }));
      return context.client.discover({ services, filter: { protocols, tags }, limit });
    },
    // The next command needs these AIDs.
    aids: 'whole',
    text: ({ entries }) =>
      formatTable(
        ['AID', 'SERVICE', 'NAME', 'BRIEF', 'PROTOCOLS', 'TAGS'],
        entries.map((e) => [e.aid, e.service, e.name, e.brief, e.protocols.join(','), e.tags.join(',')]),
        'No agent offers this service now.',
      ),
    remark: ({ entries }) =>
      entries.length === 0 &&
      'A search finds complete names only: "lang" does not find lang.translate. "svc agents show", where the agent runs, lists its names.',
    quiet: ({ entries }) => entries.map(({ aid }) => aid).join('\n'),
  });
  svc.call('resolve', 'resolve <aid>', 'find the current endpoint of an agent', {
    progress: 'Resolving',
    text: (r) =>
      formatFields({
        aid: r.aid,
        endpoints: r.endpoints.join(', '),
        'nat type': `${r.nat_type} (${natLabel(r.nat_type)})`,
        seq: r.seq,
        signed: relativeTime(r.timestamp, Date.now()),
        expires: relativeTime(r.expires_at, Date.now()),
      }),
    quiet: ({ endpoints }) => endpoints.join('\n'),
  });
  svc.run('info <aid>', 'show the profile and the endpoint of an agent', {
    progress: 'Resolving',
    run: async ({ client }, { aid }) => {
      const [endpoint, { records }] = await Promise.all([client.resolve({ aid }), client.resolveRecords({ aid })]);
      const profile = records.find((r) => r.profile !== undefined)?.profile;
      return {
        ...endpoint,
        ...(profile === undefined ? {} : { profile }),
        records: records.map(({ rec_type, seq, ttl }) => ({ rec_type, seq, ttl })),
      };
    },
    text: (i) =>
      formatFields({
        aid: i.aid,
        name: i.profile?.name,
        brief: i.profile?.brief,
        protocols: i.profile?.protocols?.join(', '),
        wakes: i.profile?.wakes_within_s === undefined ? undefined : `usually within ${i.profile.wakes_within_s} s`,
        endpoints: i.endpoints.join(', '),
        seq: i.seq,
        expires: relativeTime(i.expires_at, Date.now()),
        records: i.records.map((r) => recordName(r.rec_type)).join(', '),
      }),
    quiet: (i) => i.profile?.name ?? i.aid,
  });
  svc.call('did', 'did <aid>', 'convert a native AID to a did:key, or back', {
    examples: ['svc did bob', 'svc did did:key:z6MkiTBz1ymuepAQ4HEHYSF1H8quG5GLVVQR3djdX3mDooWp'],
    aids: 'whole',
    text: ({ aid, did }) => formatFields({ aid, did }),
    quiet: 'did',
  });
  svc.call('didDocument', 'did-document <aid>', 'show the DID document of an agent, built from its records', {
    progress: 'Resolving',
    aids: 'whole',
    text: (document) => JSON.stringify(document, null, 2),
    quiet: 'id',
  });
}
