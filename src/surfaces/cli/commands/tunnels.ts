/** `svc connect`, `svc tunnel`: TCP to remote agents. */
import type { Command } from 'commander';
import { CLIENT_WAIT_MS } from '../../../foundation/domain/tunnels.ts';
import { timeText } from '../../../foundation/quantities.ts';
import type { ContextOf, SvcClient } from '../context.ts';
import { examples } from '../examples.ts';
import { formatTable, relativeTime } from '../text.ts';
import { integer } from '../values.ts';

type Tunnel = Awaited<ReturnType<SvcClient['tunnelGet']>>;

interface ReachOptions {
  readonly localAid?: string;
  readonly accessToken?: string;
  readonly localPort?: number;
  readonly idleTimeout?: number;
  readonly relay: boolean;
}

function reach(command: Command): Command {
  return command
    .option('--local-aid <aid>', 'the agent that connects; may be left out where there is only one')
    .option(
      '--access-token <secret>',
      'what the remote agent asks for (SVC_ACCESS_TOKEN keeps it out of the process list)',
    )
    .option('--no-relay', 'fail rather than go through a relay');
}

function table(tunnels: readonly Tunnel[]): string {
  if (tunnels.length === 0) return 'No tunnel is open. Open one with "svc tunnel open <aid>".';
  const row = (t: Tunnel): string[] => [
    t.id,
    t.listen,
    t.remote_aid,
    t.path,
    `${t.rtt_ms.toFixed(1)} ms`,
    String(t.active_conns),
    `${t.bytes_up}/${t.bytes_down}`,
    relativeTime(t.last_activity_at, Date.now()),
  ];
  return formatTable(
    ['ID', 'LISTEN', 'REMOTE', 'PATH', 'RTT', 'CONNS', 'BYTES UP/DOWN', 'LAST USED'],
    tunnels.map(row),
  );
}

export function tunnelCommands(program: Command, contextOf: ContextOf): void {
  const input = (aid: string, options: ReachOptions, environment: Readonly<Record<string, string | undefined>>) => {
    const accessToken = options.accessToken ?? environment['SVC_ACCESS_TOKEN'];
    return {
      aid,
      disable_relay: !options.relay,
      ...(options.localAid === undefined ? {} : { local_aid: options.localAid }),
      ...(accessToken === undefined ? {} : { access_token: accessToken }),
    };
  };
  reach(
    program
      .command('connect')
      .argument('<aid>')
      .description('open a local address for one TCP connection')
      .addHelpText('after', examples('nc $(svc connect aid1… --quiet | tr : " ")')),
  ).action(async (aid: string, options: ReachOptions, command: Command) => {
    const context = contextOf(command);
    const result = await context.progress('Connecting', context.client.connect(input(aid, options, context.io.env)));
    context.show(result, {
      text: (r) => `Connect to ${r.tunnel} within ${timeText(CLIENT_WAIT_MS)}.`,
      quiet: (r) => r.tunnel,
    });
  });
  const tunnel = program
    .command('tunnel')
    .description('TCP tunnels to remote agents')
    .addHelpText('after', examples('svc tunnel open aid1… --local-port 2222', 'svc tunnel status'));
  reach(
    tunnel
      .command('open')
      .argument('<aid>')
      .description('open a tunnel')
      .addHelpText(
        'after',
        examples(
          'svc tunnel open aid1… --local-port 2222 && ssh -p 2222 localhost',
          'svc tunnel open aid1… --idle-timeout -1 --no-relay',
        ),
      ),
  )
    .option('--local-port <port>', 'the local port; the system chooses one where it is left out', integer)
    .option('--idle-timeout <seconds>', 'close after so long without a connection; -1 never', integer)
    .action(async (aid: string, options: ReachOptions, command: Command) => {
      const context = contextOf(command);
      const work = context.client.tunnelOpen({
        ...input(aid, options, context.io.env),
        ...(options.localPort === undefined ? {} : { local_port: options.localPort }),
        ...(options.idleTimeout === undefined ? {} : { idle_timeout_sec: options.idleTimeout }),
      });
      const opened = await context.progress('Connecting', work);
      context.show(opened, { text: (t) => `Tunnel ${t.id} listens on ${t.listen}.`, quiet: (t) => t.listen });
    });
  for (const [name, description, method] of [
    ['close', 'close a tunnel', 'tunnelClose'],
    ['reset', 'drop the connections of a tunnel and dial anew', 'tunnelReset'],
  ] as const) {
    tunnel
      .command(name)
      .argument('<id>')
      .description(description)
      .addHelpText('after', examples(`svc tunnel ${name} 3`))
      .action(async (id: string, _options, command: Command) => {
        const context = contextOf(command);
        context.show(await context.client[method]({ id }), { text: () => 'ok', quiet: () => id });
      });
  }
  tunnel
    .command('status')
    .argument('[id]', 'one tunnel; all where it is left out')
    .description('show tunnels')
    .addHelpText('after', examples('svc tunnel status'))
    .action(async (id: string | undefined, _options, command: Command) => {
      const context = contextOf(command);
      const shown =
        id === undefined ? await context.client.tunnelList() : { tunnels: [await context.client.tunnelGet({ id })] };
      context.show(shown, { text: (s) => table(s.tunnels), quiet: (s) => s.tunnels.map((t) => t.listen).join('\n') });
    });
}
