/** `svc get`, `svc post`, `svc inbound bind`: calls to other agents, and the service that answers theirs. */
import { DEFAULT_CALL_TIMEOUT_MS, MAX_CALL_TIMEOUT_MS, MAX_FETCHED_BYTES } from '../../../foundation/domain/calls.ts';
import { SvcError } from '../../../foundation/errors.ts';
import { sizeText } from '../../../foundation/quantities.ts';
import type { CommandGroup } from '../command-group.ts';
import type { CliIo } from '../io.ts';
import { readStandardInput } from '../standard-input.ts';
import { ACTING, accessToken, repeated, required, seconds, type Taken } from '../takes.ts';

/** Longest body that is read, bytes: what the daemon takes, in base64 and with the rest, is less. */
const MAX_BODY_BYTES = 1024 * 1024;

const PATH: Taken<string> = { about: 'path and query', otherwise: '/' };

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

/** @param data as it was typed; `-` stands for standard input */
async function bodyOf(io: CliIo, data: string | undefined): Promise<Buffer | undefined> {
  return data === '-' ? readStandardInput(io, MAX_BODY_BYTES) : data === undefined ? undefined : Buffer.from(data);
}

/** What an address of a bound service lets in: see docs/concepts.md, "Service". */
function waysTo(service: string): string {
  if (service.startsWith('tcp:')) return 'Tunnels';
  if (service.includes(',')) return 'Calls and tunnels';
  return /^https?(?:\+insecure)?:/.test(service) ? 'Calls' : 'Calls and tunnels';
}

export function callCommands(svc: CommandGroup): void {
  const add = (method: 'get' | 'post', lines: readonly string[], data: { readonly '-d, --data <json>'?: string }) =>
    svc.call(method, `call a remote agent with ${method.toUpperCase()}`, {
      examples: lines,
      takes: {
        '<aid>': 'the agent to call',
        '[path]': PATH,
        '--header <name:value>': repeated('a header; may be repeated'),
        '--local-aid <aid>': 'the agent that calls; may be left out where there is only one',
        '--access-token <secret>': accessToken('what the called agent asks for'),
        '--timeout <seconds>': seconds(
          `longest wait for the response to begin, and for each further byte; ${DEFAULT_CALL_TIMEOUT_MS / 1000} if left out, 0: no limit`,
          { minMs: 0, maxMs: MAX_CALL_TIMEOUT_MS },
        ),
        ...data,
      },
      operation: 'fetch',
      progress: 'Calling',
      input: async ({ aid, path, header = [], local_aid, access_token, timeout: timeout_ms, data }, { io }) => {
        if (!path.startsWith('/'))
          throw new SvcError('invalid_request', { message: `A path begins with "/": svc ${method} ${aid} /${path}` });
        const headers = parseHeaders(header);
        const bytes = await bodyOf(io, data);
        if (bytes !== undefined) headers['content-type'] ??= ['application/json'];
        const body_base64 = bytes?.toString('base64');
        return { aid, method: method.toUpperCase(), path, headers, body_base64, local_aid, access_token, timeout_ms };
      },
      // A terminal gets text that cannot drive it; a pipe gets the bytes as they are.
      text: ({ body }) => Buffer.from(body, 'base64').toString('utf8'),
      bytes: ({ body }) => Buffer.from(body, 'base64'),
      remark: ({ truncated }) =>
        truncated && `The answer is cut off at ${sizeText(MAX_FETCHED_BYTES)}. Use a tunnel for larger ones.`,
      fails: ({ status }) => status >= 400 && `The service answered with status ${status}.`,
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
  inbound.call('bind', 'bind a local service to an agent', {
    examples: [
      'svc inbound bind --addr http://127.0.0.1:8080',
      'svc inbound bind --addr tcp://127.0.0.1:22 --aid aid1…',
    ],
    takes: {
      '--addr <address>': required(
        'http:// or https://host:port for calls, tcp://host:port for tunnels, host:port or http+tcp:// for both; https+insecure:// takes any certificate; http://host:port,tcp://host:port where each has a port',
      ),
      ...ACTING,
    },
    operation: 'agentPatch',
    input: ({ aid, addr: service_tcp }) => ({ aid, service_tcp }),
    text: (a) =>
      `${waysTo(a.service_tcp)} to ${a.aid} go to ${a.service_tcp} (${a.service_tcp_ok ? 'it answers' : 'it does not answer yet'}).`,
    quiet: ({ service_tcp }) => service_tcp,
  });
  inbound.call('key', 'the key by which the service of an agent verifies who calls', {
    examples: ['svc inbound key', 'svc inbound key --aid aid1… --quiet'],
    takes: ACTING,
    operation: 'agentCallerKey',
    input: ({ aid }) => ({ aid }),
    text: ({ aid, caller_key_hex }) =>
      `${caller_key_hex}\nVerifies the header Svc-Caller-Proof of calls to ${aid}: see docs/protocol-calls.md. Give it to the service only.`,
    quiet: ({ caller_key_hex }) => caller_key_hex,
  });
}
