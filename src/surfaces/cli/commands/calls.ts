/** `svc get`, `svc post`, `svc inbound bind`: calls to other agents, and the service that answers theirs. */
import type { Command } from 'commander';
import { MAX_FETCHED_BYTES } from '../../../foundation/domain/calls.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { sizeText } from '../../../foundation/quantities.ts';
import type { CliContext, ContextOf } from '../context.ts';
import { examples } from '../examples.ts';
import { readStandardInput } from '../standard-input.ts';
import { safeText } from '../text.ts';
import { Unsuccessful } from '../unsuccessful.ts';
import { collect } from '../values.ts';

/** Longest body that is read, bytes: what the daemon takes, in base64 and with the rest, is less. */
const MAX_BODY_BYTES = 1024 * 1024;

interface CallOptions {
  readonly header: readonly string[];
  readonly localAid?: string;
  readonly accessToken?: string;
  readonly data?: string;
}

/** `K:V` texts as a header map; a name that comes twice has two values. */
function parseHeaders(texts: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const text of texts) {
    const colon = text.indexOf(':');
    if (colon < 1) throw new SvcError('invalid_request', { message: `"${text}" is not a header: write Name:value.` });
    const name = text.slice(0, colon).trim().toLowerCase();
    headers[name] = [...(headers[name] ?? []), text.slice(colon + 1).trim()];
  }
  return headers;
}

async function call(
  context: CliContext,
  method: string,
  aid: string,
  path: string,
  options: CallOptions,
): Promise<void> {
  if (!path.startsWith('/'))
    throw new SvcError('invalid_request', {
      message: `A path begins with "/": svc ${method.toLowerCase()} ${aid} /${path}`,
    });
  const headers = parseHeaders(options.header);
  const data =
    options.data === '-'
      ? await readStandardInput(context.io, MAX_BODY_BYTES)
      : options.data === undefined
        ? undefined
        : Buffer.from(options.data, 'utf8');
  if (data !== undefined && headers['content-type'] === undefined) headers['content-type'] = ['application/json'];
  const work = context.client.fetch({
    aid,
    method,
    path,
    headers,
    ...(data === undefined ? {} : { body_base64: data.toString('base64') }),
    ...(options.localAid === undefined ? {} : { local_aid: options.localAid }),
    ...(options.accessToken === undefined ? {} : { access_token: options.accessToken }),
  });
  const answer = await context.progress('Calling', work);
  if (context.options.json === true) context.show(answer, { text: () => '' });
  else {
    const body = Buffer.from(answer.body, 'base64');
    // A terminal gets text that cannot drive it; a pipe gets the bytes as they are.
    if (context.io.stdout.isTTY === true) context.io.stdout.write(`${safeText(body.toString('utf8'))}\n`);
    else context.io.stdout.write(body);
  }
  if (answer.truncated)
    context.note(`The answer is cut off at ${sizeText(MAX_FETCHED_BYTES)}. Use a tunnel for larger ones.`);
  if (answer.status >= 400) throw new Unsuccessful(`The service answered with status ${answer.status}.`);
}

const EXAMPLES = {
  get: examples('svc get aid1… /health', "svc get aid1… '/search?q=may' --header Accept:text/plain"),
  post: examples(
    `svc post aid1… /translate -d '{"text":"Guten Tag"}'`,
    'svc post aid1… /upload --header Content-Type:text/csv -d - < list.csv',
  ),
};

export function callCommands(program: Command, contextOf: ContextOf): void {
  for (const method of ['get', 'post'] as const) {
    const command = program
      .command(method)
      .argument('<aid>', 'the agent to call')
      .argument('[path]', 'path and query', '/')
      .description(`call a remote agent with ${method.toUpperCase()}`)
      .option('--header <name:value>', 'a header; may be repeated', collect, [])
      .option('--local-aid <aid>', 'the agent that calls; may be left out where there is only one')
      .option(
        '--access-token <secret>',
        'what the called agent asks for (SVC_ACCESS_TOKEN keeps it out of the process list)',
      );
    if (method === 'post') command.option('-d, --data <json>', 'the body; "-" reads standard input');
    command
      .addHelpText('after', EXAMPLES[method])
      .action((aid: string, path: string, options: CallOptions, self: Command) => {
        const context = contextOf(self);
        const accessToken = options.accessToken ?? context.io.env['SVC_ACCESS_TOKEN'];
        return call(
          context,
          method.toUpperCase(),
          aid,
          path,
          accessToken === undefined ? options : { ...options, accessToken },
        );
      });
  }
  program
    .command('inbound')
    .description('the service that answers calls')
    .addHelpText('after', examples('svc inbound bind --addr 127.0.0.1:8080'))
    .command('bind')
    .description('bind a local service to an agent')
    .addHelpText(
      'after',
      examples('svc inbound bind --addr 127.0.0.1:8080', 'svc inbound bind --addr https://127.0.0.1:8443 --aid aid1…'),
    )
    .requiredOption(
      '--addr <address>',
      'host:port, http://host:port or https://host:port; https+insecure:// takes any certificate',
    )
    .option('--aid <aid>', 'the agent; may be left out where there is only one')
    .action(async (options: { addr: string; aid?: string }, command: Command) => {
      const context = contextOf(command);
      const aid = await context.localAgent(options.aid);
      const agent = await context.client.agentPatch({ aid, service_tcp: options.addr });
      context.show(agent, {
        text: (a) =>
          `Calls to ${a.aid} go to ${a.service_tcp} (${a.service_tcp_ok ? 'it answers' : 'it does not answer yet'}).`,
        quiet: (a) => a.service_tcp,
      });
    });
}
