/** `svc expose`: public https addresses of local agents, for callers without svcd. */
import { setTimeout as pause } from 'node:timers/promises';
import type { AnswerOf } from '../client.ts';
import { type CommandGroup, confirmOrThrow } from '../command-group.ts';
import type { CliContext } from '../context.ts';
import { actingArgument, repeatable } from '../options.ts';
import { tryPublish } from '../publication.ts';
import { formatFields, type WrappedText } from '../text.ts';

type Exposure = AnswerOf<'exposureOpen'>;

/** An address, and the first token for it. */
export interface Exposed extends Exposure {
  readonly token?: string;
}

/** Label of the first token. */
const FIRST_TOKEN = 'first';
/** Time to wait for a certificate, and between two looks at it, milliseconds. */
const CERTIFICATE_MS = 90_000;
const LOOK_MS = 500;

export interface ExposeChoice {
  readonly aid: string;
  readonly name?: string | undefined;
  readonly at?: string | undefined;
  readonly only?: readonly string[] | undefined;
  readonly public?: true | undefined;
  readonly mcp?: true | undefined;
}

/** Exposes an agent, and waits until its address can be called, or a reason why not is known. */
export async function expose(context: CliContext, choice: ExposeChoice): Promise<Exposed> {
  const { client } = context;
  const { aid, name, only } = choice;
  const at = choice.at === undefined ? undefined : await context.aid(choice.at);
  const mode = choice.public === true ? 'public' : choice.mcp === true ? 'mcp' : only === undefined ? 'tokens' : 'only';
  const { id, tokens } = await client.exposureOpen({
    aid,
    name,
    at,
    mode,
    ...(only === undefined ? {} : { rules: [...only] }),
  });
  // The entry finds the node of the agent by its record.
  await context.progress('Publishing', tryPublish(context, aid));
  const needsToken = mode === 'tokens' && tokens.length === 0;
  const token = needsToken ? (await client.exposureTokenAdd({ id, label: FIRST_TOKEN })).token : undefined;
  const exposure = await context.progress('Waiting for the certificate', certified(context, id));
  return token === undefined ? exposure : { ...exposure, token };
}

/** Exposes an agent after it was bound. @param at the entry; true: the entry in use */
export async function exposeAt(context: CliContext, aid: string, at: string | true) {
  const { url, token } = await expose(context, { aid, at: at === true ? undefined : at });
  return { url, ...(token === undefined ? {} : { token }) };
}

async function certified({ client, io }: CliContext, id: string): Promise<Exposure> {
  for (const until = Date.now() + CERTIFICATE_MS; ; ) {
    const { exposures } = await client.exposureList();
    const found = exposures.find((one) => one.id === id);
    if (found === undefined) throw new Error('the public address was removed');
    if (found.state !== 'waiting' || Date.now() > until || io.signal?.aborted === true) return found;
    await pause(LOOK_MS);
  }
}

/** How a client calls an address. */
function callText({ url, mode, rules, tokens, token }: Exposed): string {
  if (mode === 'public') return `curl ${url}/`;
  const [method = '*', path = '/'] = rules[0]?.split(' ') ?? [];
  if (mode === 'only') return `curl${method === '*' ? '' : ` -X ${method}`} ${url}${path}`;
  if (token !== undefined) return `curl ${url}/ -H 'Authorization: Bearer ${token}'`;
  return tokens.length === 0 ? 'svc expose token add' : `curl ${url}/ -H 'Authorization: Bearer svcp_…'`;
}

const PASSES = { tokens: 'requests with a token', only: 'requests with a token, and', public: 'all requests' } as const;

function passText({ mode, rules }: Exposure): string {
  return mode === 'only' ? `${PASSES.only} ${rules.join(', ')}` : PASSES[mode];
}

function stateText({ state, problem }: Exposure): string {
  if (state === 'off') return 'off: expose the agent again';
  if (problem !== null) return `${state}: ${problem.message}`;
  return state === 'waiting' ? 'waits for its certificate' : state;
}

function exposedText(exposed: Exposed): WrappedText {
  return formatFields({
    ADDRESS: exposed.url,
    PASSES: passText(exposed),
    STATE: stateText(exposed),
    CALL: callText(exposed),
    ...(exposed.token === undefined ? {} : { TOKEN: exposed.token }),
  });
}

const TOKEN_REMARK = 'Keep the token: it is not shown again. Make one for each client with "svc expose token add".';

export function exposeCommands(svc: CommandGroup): void {
  const group = svc.group(
    'expose',
    'public https addresses of local agents',
    [
      'svc expose demo --at vps',
      'svc expose demo --only "POST /hooks/github"',
      'svc expose token add demo laptop --expires 30d',
    ],
    {
      options: {
        '[agent]': actingArgument('the local agent'),
        '--name <name>':
          'a label such as demo, or a whole name below a domain of the entry; default: the name of the agent',
        '--at <node>': 'the node that is the entry; default: the entry in use',
        '--only <request>': repeatable('a method and a path that need no token, such as "POST /hooks/github"'),
        '--mcp': 'OAuth for MCP clients',
        '--public': 'no request needs a token',
        '-y, --yes': 'do not ask',
      },
      run: async (context, { yes, agent: aid, ...choice }) => {
        if (choice.public === true && yes !== true)
          await confirmOrThrow(context, {
            question: 'Let everyone on the Internet call this agent?',
            consequence: 'Every request reaches its service, without a token.',
          });
        return await expose(context, { ...choice, aid });
      },
      text: (exposed: Exposed) => exposedText(exposed),
      quiet: ({ url }) => url,
      remark: ({ token }) => token !== undefined && TOKEN_REMARK,
      once: { holds: ({ token }) => token !== undefined },
    },
  );
  group.call('exposureList', 'list', 'list the public addresses and their tokens', {
    table: {
      of: 'exposures',
      columns: {
        ID: 'id',
        ADDRESS: 'url',
        AGENT: 'aid',
        PASSES: passText,
        TOKENS: ({ tokens }) => tokens.map(({ label }) => label).join(', '),
        REQUESTS: ({ clients }) => clients.reduce((sum, { requests }) => sum + requests, 0),
        REFUSED: ({ clients }) => clients.reduce((sum, { refused }) => sum + refused, 0),
        STATE: stateText,
      },
      none: 'No public addresses. Make one with "svc expose <agent> --at <node>".',
    },
    quiet: ({ exposures }) => exposures.map(({ url }) => url).join('\n'),
  });
  group.call('exposureOff', 'off <id>', 'remove a public address and its connections', {
    text: 'The agent is no longer exposed at this address.',
  });
  const token = group.group('token', 'tokens of the clients of a public address', [
    'svc expose token add demo laptop --only "GET /files"',
    'svc expose token rm demo laptop',
  ]);
  token.call(
    'exposureTokenAdd',
    'add <id> <label> --only=rules <request> --expires=expires_at <time>',
    'make a token',
    {
      help: {
        rules: 'a method and a path that the token allows; default: all',
        expires_at: 'end of the token: 30m, 12h, 7d or a date',
      },
      text: ({ token: text }) => text,
      remark: () => TOKEN_REMARK,
      quiet: 'token',
      once: {
        holds: () => true,
        undo: ({ client }, { id }, typed) => client.exposureTokenRemove({ id: typed.id, token: id }),
      },
    },
  );
  token.call('exposureTokenRemove', 'rm <id> <token>', 'remove a token; its requests end immediately', {
    text: (_, { token: named }) => `Removed the token ${named}.`,
  });
}
