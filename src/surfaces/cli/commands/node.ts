/** `svc status`, `svc version`: the daemon itself. */
import type { Command } from 'commander';
import type { ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { counted, formatFields, relativeTime } from '../text.ts';

function uptime(seconds: number): string {
  const hours = Math.floor(seconds / 3600);
  return hours > 0
    ? `${hours} h ${Math.floor((seconds % 3600) / 60)} min`
    : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function nodeCommands(program: Command, contextOf: ContextOf, version: string): void {
  program
    .command('status')
    .description('show the state of the node: identity, network, traffic')
    .addHelpText('after', examples('svc status', 'svc status --json | jq .dht_peers'))
    .action(async (_options, command: Command) => {
      const context = contextOf(command);
      context.show(await context.client.status(), {
        text: (s) =>
          formatFields([
            ['node', s.node_aid],
            ['version', s.version],
            ['up', uptime(s.uptime_s)],
            [
              'network',
              s.network_ready ? `ready, ${counted(s.dht_peers, 'peer')}` : 'not ready: no other node is known yet',
            ],
            ['reachability', s.nat_type_label],
            ['listens on', s.listen_addrs.join(', ')],
            ['seen as', s.observed_addrs.join(', ')],
            [
              'published',
              s.node_last_publish_at === null ? 'not yet' : relativeTime(s.node_last_publish_at, Date.now()),
            ],
            ['traffic', `${s.bytes_up} bytes up, ${s.bytes_down} bytes down`],
            ['tunnels', s.tunnels_active],
            ['data', s.data_dir],
          ]),
        quiet: (s) => s.node_aid,
      });
    });
  program
    .command('version')
    .description('show the versions of this command and of the daemon')
    .addHelpText('after', examples('svc version'))
    .action(async (_options, command: Command) => {
      const context = contextOf(command);
      const asked = context.absence === null ? context.client.status() : Promise.reject(context.absence);
      const daemon = await asked.then(
        (s) => s.version,
        () => null,
      );
      context.show(
        { svc: version, svcd: daemon },
        { text: (v) => `svc ${v.svc}, svcd ${v.svcd ?? 'not reachable'}`, quiet: (v) => v.svc },
      );
    });
}
