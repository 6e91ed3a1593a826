/** The tools of eleven public MCP servers, each offered by several agents, and 100 searches for them. */
import { readFileSync } from 'node:fs';
import type { Tool } from '@modelcontextprotocol/server';

/** Each of them runs a copy of every server. */
const OWNERS = 'work nina otto club anna ben carla david emma finn greta hugo iris jonas'.split(' ');

export interface CatalogServer {
  /** The label of its agent: the owner and the server. */
  readonly label: string;
  readonly tools: readonly Tool[];
}

export interface Search {
  /** The keywords. */
  readonly query: string;
  /** The server and the tool that must be found. */
  readonly server: string;
  readonly tool: string;
}

function lines(file: string): string[] {
  const text = readFileSync(new URL(`./hub-catalog/${file}`, import.meta.url), 'utf8');
  return text.split('\n').filter((line) => line !== '');
}

/** The real names and parameters of the tools, with short descriptions. */
function servers(): Map<string, Tool[]> {
  const all = new Map<string, Tool[]>();
  let tools: Tool[] = [];
  for (const line of lines('tools.txt')) {
    const [, server] = /^# (\w+):/.exec(line) ?? [];
    if (server !== undefined) all.set(server, (tools = []));
    else {
      const [name = '', description = '', parameters = ''] = line.split('|');
      const properties = parameters.split(',').filter(Boolean);
      const schemas = Object.fromEntries(properties.map((property) => [property, { type: 'string' }]));
      tools.push({ name, description, inputSchema: { type: 'object', properties: schemas } });
    }
  }
  return all;
}

/** All servers at each of 1 to 14 owners. */
export function catalog(owners: number): CatalogServer[] {
  return OWNERS.slice(0, owners).flatMap((owner) =>
    [...servers()].map(([server, tools]): CatalogServer => ({ label: `${owner}-${server}`, tools })),
  );
}

/** Searches as a model puts them. They were written from the tool lists, before the ranking. */
export function searches(): Search[] {
  return lines('searches.txt').map((line) => {
    const [, server = '', tool = '', query = ''] = /^(\w+)\.([^|]+)\|(.+)$/.exec(line) ?? [];
    return { query, server, tool };
  });
}
