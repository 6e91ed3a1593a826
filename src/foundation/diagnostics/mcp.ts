/** Checks that an assistant can connect: the MCP server answers the first request. */
import { type Finding, findingsOf } from '../domain/findings.ts';
import { memberOf, readJson } from '../json.ts';

/** Longest wait for the response, milliseconds. */
const TIMEOUT_MS = 10_000;
/** The server to check. */
export interface McpPlace {
  /** Address of the API, such as `http://127.0.0.1:2121`. */
  readonly baseUrl: string;
  /** The API token; absent or empty if none is needed. */
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Default: `fetch` of the platform. */
  readonly streamFetch?: (url: string, init: RequestInit) => Promise<Response>;
}

/** An old protocol revision that every server supports. */
const PROTOCOL = '2025-06-18';

const HELLO = {
  jsonrpc: '2.0',
  id: 1,
  method: 'initialize',
  params: { protocolVersion: PROTOCOL, capabilities: {}, clientInfo: { name: 'svc doctor', version: '1' } },
};

/** The JSON of a response, or of the first event of a stream. */
function jsonOf(text: string): unknown {
  return readJson(/^data: ?(.*)$/m.exec(text)?.[1] ?? text);
}

/** Sends the first request of an MCP client. Never throws: no response is a finding too. */
export async function checkMcp({ baseUrl, headers, token, streamFetch = fetch }: McpPlace): Promise<Finding> {
  const mcp = findingsOf('mcp');
  const url = `${baseUrl.replace(/\/+$/, '')}/mcp/`;
  const hint = 'See the log of svcd. Configuration for an assistant: svcd mcp print';
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
      ? mcp.pass(`MCP clients can connect to ${url}`, { code: 'mcp_works', values: { url } })
      : mcp.fail(`the MCP server at ${url} answers with status ${response.status}, but not with a valid result`, hint, {
          code: 'mcp_invalid',
          values: { url, status: response.status },
        });
  } catch {
    return mcp.fail(`the MCP server at ${url} does not answer`, hint, { code: 'mcp_silent', values: { url } });
  }
}
