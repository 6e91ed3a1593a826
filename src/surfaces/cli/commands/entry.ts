/** `svc entry`: this node as an entry for public names of agents. */
import { pluralize, relativeTime } from '../../../foundation/display-text.ts';
import type { AnswerOf } from '../client.ts';
import type { CommandGroup } from '../command-group.ts';
import { formatTable, type OutputText, safeLine } from '../text.ts';

type State = AnswerOf<'entryShow'>;

function namesTable({ names }: State) {
  const now = Date.now();
  const rows = names.map((one) => [one.name, one.aid, relativeTime(one.seen_at, now), one.connections]);
  return formatTable(['NAME', 'AGENT', 'SEEN', 'OPEN'], rows, 'No public names.');
}

function stateText(state: State): OutputText {
  const { domains, ports, problem, allowed, connections } = state;
  if (domains.length === 0)
    return 'This node is no entry. Set public_names in config.toml to a domain that leads to it.';
  const now = Date.now();
  const rows = allowed.map(({ aid, created_at }) => [aid, relativeTime(created_at, now)]);
  return [
    safeLine(
      `Entry for ${domains.join(', ')} on TCP ports ${ports.join(', ')}: ${pluralize(connections, 'connection')}.`,
    ),
    ...(problem === null ? [] : [safeLine(problem.message)]),
    formatTable(
      ['ALLOWED AGENT', 'SINCE'],
      rows,
      'No agent may hold a name. Use "svc entry allow" or "svc invite --public".',
    ),
    namesTable(state),
  ];
}

export function entryCommands(svc: CommandGroup): void {
  const about = 'this node as an entry: public names of agents lead here';
  const entry = svc.group('entry', about, ['svc entry', 'svc entry allow bob', 'svc entry rm demo.vps.example.org'], {
    run: ({ client }) => client.entryShow(),
    text: stateText,
    quiet: ({ domains }: State) => domains.join('\n'),
    watch: true,
  });
  entry.call('entryAllow', 'allow <aid>', 'permit an agent to hold public names here', {
    text: (_, { aid }) => `${aid} may hold public names here.`,
  });
  entry.call('entryDeny', 'deny <aid>', 'withdraw the permission and the names of an agent', {
    text: (_, { aid }) => `${aid} may no longer hold public names here.`,
  });
  entry.call('entryShow', 'list', 'list the public names and their holders', {
    text: namesTable,
    quiet: ({ names }) => names.map(({ name }) => name).join('\n'),
  });
  entry.call('entryNameRemove', 'rm <name>', 'free a public name and close its connections', {
    text: (_, { name }) => `${name} is free.`,
  });
}
