/** `svc use`, `svc whoami`: the agent in use, for commands that name none. */
import { SvcError } from '../../../foundation/errors.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { formatFields } from '../text.ts';

const WHY = {
  env: 'set by SVC_AID',
  use: 'set by "svc use"',
  only: 'the only agent here',
  asked: 'you chose it',
} as const;

/** The setting belongs to the local daemon. @throws SvcError `local_only` */
function refuseRemote({ options }: CliContext): void {
  if (options.via !== undefined)
    throw new SvcError('local_only', {
      message: '"svc use" selects an agent of this machine. Omit --via, or use --as.',
    });
}

export function useCommands(svc: CommandGroup): void {
  svc.run('use', 'set the agent for commands that name none; SVC_AID sets it for one shell', {
    examples: ['svc use aid1…', 'svc use --off'],
    options: { '[agent]': 'an agent of this daemon', '--off': 'clear this setting' },
    run: async (context, { agent, off }) => {
      if (agent === undefined && off !== true) return { aid: (await context.acting()).aid };
      if (off === true) {
        refuseRemote(context);
        context.choice.write(undefined);
        return { aid: null };
      }
      refuseRemote(context);
      const { aid } = await context.withLocalAgentHint(context.client.agentGet({ aid: agent ?? '' }));
      context.choice.write(aid);
      return { aid };
    },
    text: ({ aid }) => (aid === null ? 'No agent is in use.' : `Commands that name no agent use ${aid}.`),
    quiet: ({ aid }) => aid ?? '',
  });
  svc.run('whoami', 'show the agent in use, and why', {
    examples: ['svc whoami', 'svc whoami --quiet'],
    run: async (context) => {
      const { aid, why } = await context.acting();
      const { name, status, service_tcp } = await context.withLocalAgentHint(context.client.agentGet({ aid }));
      return { aid, why, status, service_tcp, ...(name === undefined ? {} : { name }) };
    },
    text: ({ aid, why, name, status, service_tcp }) =>
      formatFields({ aid, name, status, service: service_tcp || 'none bound', because: WHY[why] }),
    quiet: ({ aid }) => aid,
  });
}
