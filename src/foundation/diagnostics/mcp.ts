/** Whether an assistant can connect: the MCP server answers its first request. */
import { type Finding, findingsOf } from '../domain/findings.ts';
import { memberOf, readJson } from '../json.ts';

/** Longest wait for its greeting, milliseconds. */
const TIMEOUT_MS = 10_000;
/** Whom the greeting is asked for. */
export interface McpPlace {
  /** Where the daemon answers, such as `http://127.0.0.1:2121`. */
  readonly baseUrl: string;
  /** The API token; absent or empty where none is asked for. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Left out: that of the platform. */
  readonly streamFetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** An old revision of the protocol, which every server understands. */
const PROTOCOL = '2025-06-18';

const HELLO = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: 'svc doctor', version: '1' } },
};

/** The JSON of an answer, or of the first event where the server streams it. */
function jsonOf(text: string): unknown {
  return readJson(/^data: ?(.*)$/m.exec(text)?.[1] ?? text);
}

/** Greets the MCP server as a client would. Never throws: no answer is a finding too. */
export async function checkMcp({ baseUrl, headers, token, streamFetch = fetch }: McpPlace): Promise<Finding> {
  const mcp = findingsOf('mcp');
  const url = `${baseUrl.replace(/\/+$/, '')}/mcp/`;
  const hint = 'The log of svcd says why. Its configuration for an assistant: svcd mcp print';
  try {
    const response = await streamFetch(url, {
      method: 'POST',
      headers: {
        ...headers,
        ...(token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }),
        accept: 'application/json, text/event-stream',
        'content-type': 'application/json',
      },
      body: JSON.stringify(HELLO),
      redirect: 'error',
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const name = memberOf(jsonOf(await response.text()), 'result', 'serverInfo', 'name');
    return name === 'svcd'
      ? mcp.pass(`MCP clients can connect to ${url}`)
      : mcp.fail(`the MCP server at ${url} answers with status ${response.status} and no greeting`, hint);
  } catch {
    return mcp.fail(`the MCP server at ${url} does not answer`, hint);
  }
}
