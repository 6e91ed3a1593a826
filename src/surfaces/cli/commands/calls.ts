/** `svc get`, `svc post`, `svc inbound bind`: calls to other agents, and the service that answers calls here. */

import { sizeText } from '../../../foundation/display-text.ts';
import { MAX_DECISION_WAIT_S } from '../../../foundation/domain/access.ts';
import {
  DEFAULT_CALL_TIMEOUT_MS,
  MAX_CALL_TIMEOUT_MS,
  MAX_FETCHED_BYTES,
} from '../../../foundation/domain/services.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { cleanPastedId } from '../../../foundation/pasted.ts';
import type { CommandGroup } from '../command-group.ts';
import { confirmReplacement } from '../confirm-replacement.ts';
import type { CliIo } from '../input.ts';
import { readStandardInput } from '../input.ts';
import {
  ACTING_AGENT,
  accessToken,
  CALLING_AGENT,
  integer,
  repeatable,
  required,
  seconds,
  type ValueOption,
} from '../options.ts';
import { CommandFailure } from '../output.ts';

/** Largest body, bytes. In base64 the request stays below the limit of the daemon. */
const MAX_BODY_BYTES = 1024 * 1024;

const PATH: ValueOption<string> = { about: 'path and query', otherwise: '/' };

/** Parses `K:V` texts to a header map. A repeated name has several values. */
function parseHeaders(texts: readonly string[]): Record<string, string[]> {
  const headers: Record<string, string[]> = {};
  for (const text of texts) {
    const colon = text.indexOf(':');
    if (colon < 1) throw new SvcError('invalid_request', { message: `"${text}" is not a header. Use Name:value.` });
    const name = text.slice(0, colon).trim().toLowerCase();
    headers[name] = [...(headers[name] ?? []), text.slice(colon + 1).trim()];
  }
  return headers;
}

/** The agent and the path of a call, which a link may name together. */
function calledAt({ aid, path }: { readonly aid: string; readonly path: string }): { aid: string; path: string } {
  const [, agent, linked] = /^svc:\/\/([^/]+)(\/.+)$/i.exec(cleanPastedId(aid)) ?? [];
  return agent === undefined || linked === undefined || path !== '/' ? { aid, path } : { aid: agent, path: linked };
}

/** @param data as typed; `-` means standard input */
async function bodyOf(io: CliIo, data: string | undefined): Promise<Buffer | undefined> {
  return data === '-' ? readStandardInput(io, MAX_BODY_BYTES) : data === undefined ? undefined : Buffer.from(data);
}

/** The accepted uses of a service address: see docs/concepts.md, "Service". */
function acceptedUses(service: string): string {
  if (service.startsWith('tcp:')) return 'Tunnels';
  if (service.includes(',')) return 'Calls and tunnels';
  return /^https?(?:\+insecure)?:/.test(service) ? 'Calls' : 'Calls and tunnels';
}

/** A response as `fetch` returns it. */
interface Fetched {
  readonly status: number;
  readonly body: string;
  readonly truncated: boolean;
}

function statusProblem(status: number): string | null {
  return status >= 400 ? `The service responded with status ${status}.` : null;
}

/** The reason for not printing a response, and the command that streams it. */
function tooLong(status: number): string {
  const why = `The response is longer than ${sizeText(MAX_FETCHED_BYTES)}, so nothing of it was printed.`;
  const way = 'To fetch it completely: curl "$(svc open <agent> <path> --quiet)"';
  return [statusProblem(status), why, way].filter((part) => part !== null).join(' ');
}

/** @throws CommandFailure for a truncated response, so that its reader does not take it for complete */
function wholeBody({ status, body, truncated }: Fetched): Buffer {
  if (truncated) throw new CommandFailure(tooLong(status));
  return Buffer.from(body, 'base64');
}

export function callCommands(svc: CommandGroup): void {
  const add = (method: 'get' | 'post', lines: readonly string[], data: { readonly '-d, --data <json>'?: string }) =>
    svc.run(method, `call a remote agent with ${method.toUpperCase()}`, {
      examples: lines,
      options: {
        '<aid>': 'the agent to call',
        '[path]': PATH,
        '--header <name:value>': repeatable('a header; repeatable'),
        ...CALLING_AGENT,
        '--access-token <secret>': accessToken('access token that the called agent requires'),
        '--timeout <seconds>': seconds(
          `seconds to wait for the response to begin, and for each further byte; default ${DEFAULT_CALL_TIMEOUT_MS / 1000}, 0 for no limit`,
          { minMs: 0, maxMs: MAX_CALL_TIMEOUT_MS },
        ),
        '--note <text>': 'a note to the owner of the agent, if it must allow you first',
        '--wait <seconds>': integer(`wait for the decision of the owner, at most ${MAX_DECISION_WAIT_S}`),
        ...data,
      },
      run: async (context, typed) => {
        const { header = [], local_aid, access_token, timeout: timeout_ms, note, wait: wait_s, data } = typed;
        const { aid, path } = calledAt(typed);
        if (!path.startsWith('/'))
          throw new SvcError('invalid_request', {
            message: `A path must begin with "/": svc ${method} ${aid} /${path}`,
          });
        const headers = parseHeaders(header);
        const bytes = await bodyOf(context.io, data);
        if (bytes !== undefined) headers['content-type'] ??= ['application/json'];
        const body_base64 = bytes?.toString('base64');
        const rest = { body_base64, local_aid, access_token, timeout_ms, note, wait_s };
        const call = context.client.fetch({ aid, method: method.toUpperCase(), path, headers, ...rest });
        // Not while the body is typed.
        return context.progress('Calling', call);
      },
      // Text on a terminal is made safe. A pipe receives the bytes unchanged.
      text: (answer) => wholeBody(answer).toString('utf8'),
      bytes: wholeBody,
      fails: ({ status, truncated }) => (truncated ? tooLong(status) : (statusProblem(status) ?? false)),
    });
  add('get', ['svc get aid1… /health', "svc get aid1… '/search?q=may' --header Accept:text/plain"], {});
  add(
    'post',
    [
      `svc post aid1… /translate -d '{"text":"Guten Tag"}'`,
      'svc post aid1… /upload --header Content-Type:text/csv -d - < list.csv',
    ],
    { '-d, --data <json>': 'the body; "-" reads standard input' },
  );
  const inbound = svc.group('inbound', 'the service that answers calls', [
    'svc inbound bind --addr http://127.0.0.1:8080',
  ]);
  inbound.run('bind', 'bind a local service to an agent', {
    examples: ['svc inbound bind --addr http://127.0.0.1:8080', 'svc inbound bind --addr tcp://127.0.0.1:22 --as home'],
    options: {
      '--addr <address>': required(
        'http:// or https://host:port for calls, tcp://host:port for tunnels, host:port or http+tcp:// for both; https+insecure:// accepts any certificate; http://host:port,tcp://host:port uses a port for each',
      ),
      '--replace': 'replace another service of the agent',
      ...ACTING_AGENT,
    },
    run: async (context, { aid: named, addr: service_tcp, replace }) => {
      const aid = await context.localAgent(named);
      const replaced = await confirmReplacement(context, aid, replace === true, service_tcp, 'Replace it?');
      const agent = await context.withLocalAgentHint(context.client.agentPatch({ aid, service_tcp }));
      return replaced === null ? agent : { ...agent, replaced };
    },
    text: (a) =>
      `${'replaced' in a ? `Replaced ${a.replaced}. ` : ''}${acceptedUses(a.service_tcp)} to ${a.aid} go to ${a.service_tcp} (${a.service_tcp_ok ? 'responds' : 'does not respond yet'}).`,
    quiet: ({ service_tcp }) => service_tcp,
  });
  const acting = inbound.acting();
  acting.call('agentPatch', 'unbind', 'remove the service of an agent, which stays registered', {
    examples: ['svc inbound unbind', 'svc inbound unbind --as home'],
    sets: { service_tcp: '' },
    text: ({ aid }) => `${aid} has no service now. Bind one with "svc inbound bind".`,
    quiet: 'aid',
  });
  acting.call('agentCallerKey', 'key', 'show the key with which the service of an agent verifies its callers', {
    examples: ['svc inbound key', 'svc inbound key --as home --quiet'],
    text: ({ aid, caller_key_hex }) =>
      `${caller_key_hex}\nIt verifies the header Svc-Caller-Proof of calls to ${aid} (docs/protocol-calls.md). Give it only to the service.`,
    quiet: 'caller_key_hex',
  });
}
