/** `svc unpublish`, `search`, `info`, `resolve`: what agents offer and where they are. */
import type { Command } from 'commander';
import { RECORD } from '../../../foundation/records/types.ts';
import { natLabel } from '../../../operations/node.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { formatFields, formatTable, relativeTime } from '../text.ts';
import { collect, integer } from '../values.ts';

const RECORD_NAMES: ReadonlyMap<number, string> = new Map([
  [RECORD.endpoints, 'endpoints'],
  [RECORD.profile, 'profile'],
  [RECORD.encryptionKeys, 'keys for notes'],
]);

/** A record type as it is written in the protocol, with what it holds where that is known. */
function recordName(type: number): string {
  const number = `0x${type.toString(16).padStart(2, '0')}`;
  const name = RECORD_NAMES.get(type);
  return name === undefined ? number : `${number} (${name})`;
}

interface SearchOptions {
  readonly filterProtocol: readonly string[];
  readonly filterTag: readonly string[];
  readonly limit?: number;
}

async function search(context: CliContext, services: readonly string[], options: SearchOptions): Promise<void> {
  const filter = { protocols: [...options.filterProtocol], tags: [...options.filterTag] };
  const found = await context.progress(
    'Searching',
    context.client.discover({
      services: [...services],
      filter,
      ...(options.limit === undefined ? {} : { limit: options.limit }),
    }),
  );
  context.show(found, {
    text: ({ entries }) =>
      entries.length === 0
        ? 'Nobody offers this now.'
        : formatTable(
            ['AID', 'SERVICE', 'NAME', 'BRIEF', 'PROTOCOLS', 'TAGS'],
            entries.map((e) => [e.aid, e.service, e.name, e.brief, e.protocols.join(','), e.tags.join(',')]),
          ),
    quiet: ({ entries }) => entries.map((e) => e.aid).join('\n'),
  });
}

export function directoryCommands(program: Command, contextOf: ContextOf): void {
  program
    .command('unpublish')
    .argument('<service>')
    .description('stop renewing a service; its record expires by itself')
    .addHelpText('after', examples('svc unpublish lang.translate'))
    .option('--aid <aid>', 'the agent; may be left out where there is only one')
    .action(async (service: string, options: { aid?: string }, command: Command) => {
      const context = contextOf(command);
      const aid = await context.localAgent(options.aid);
      context.show(await context.client.serviceUnregister({ aid, service }), {
        text: () => `${service} is renewed no more; its record expires by itself.`,
        quiet: () => service,
      });
    });
  program
    .command('search')
    .argument('<service...>', 'one or more service names')
    .description('find agents that offer a service')
    .addHelpText('after', examples('svc search lang.translate', 'svc search lang.translate --filter-tag fast --quiet'))
    .option('--filter-protocol <name>', 'only those that speak it; may be repeated (any of them)', collect, [])
    .option('--filter-tag <name>', 'only those that carry it; may be repeated (all of them)', collect, [])
    .option('--limit <n>', 'at most so many', integer)
    .action((services: string[], options: SearchOptions, command: Command) =>
      search(contextOf(command), services, options),
    );
  program
    .command('resolve')
    .argument('<aid>')
    .description('find where an agent is now')
    .addHelpText('after', examples('svc resolve aid1…'))
    .action(async (aid: string, _options, command: Command) => {
      const context = contextOf(command);
      context.show(await context.progress('Resolving', context.client.resolve({ aid })), {
        text: (r) =>
          formatFields([
            ['aid', r.aid],
            ['endpoints', r.endpoints.join(', ')],
            ['nat type', `${r.nat_type} (${natLabel(r.nat_type)})`],
            ['seq', r.seq],
            ['signed', relativeTime(r.timestamp, Date.now())],
            ['expires', relativeTime(r.expires_at, Date.now())],
          ]),
        quiet: (r) => r.endpoints.join('\n'),
      });
    });
  program
    .command('info')
    .argument('<aid>')
    .description('show what an agent says of itself and where it is')
    .addHelpText('after', examples('svc info aid1…'))
    .action(async (aid: string, _options, command: Command) => {
      const context = contextOf(command);
      const [endpoint, { records }] = await context.progress(
        'Resolving',
        Promise.all([context.client.resolve({ aid }), context.client.resolveRecords({ aid })]),
      );
      const profile = records.find((r) => r.profile !== undefined)?.profile;
      context.show(
        {
          ...endpoint,
          ...(profile === undefined ? {} : { profile }),
          records: records.map((r) => ({ rec_type: r.rec_type, seq: r.seq, ttl: r.ttl })),
        },
        {
          text: (i) =>
            formatFields([
              ['aid', i.aid],
              ['name', i.profile?.name],
              ['brief', i.profile?.brief],
              ['protocols', i.profile?.protocols?.join(', ')],
              ['endpoints', i.endpoints.join(', ')],
              ['seq', i.seq],
              ['expires', relativeTime(i.expires_at, Date.now())],
              ['records', i.records.map((r) => recordName(r.rec_type)).join(', ')],
            ]),
          quiet: (i) => i.profile?.name ?? i.aid,
        },
      );
    });
}
