/**
 * A catalog of 200 servers with 20 tools each, and 200 questions about it. Each kind of server exists four or five
 * times, at different agents and in different styles, so that every tool has near-duplicates.
 */
import { readFileSync } from 'node:fs';
import type { Tool } from '@modelcontextprotocol/server';

/** Servers and tools of each. */
export const CATALOG_SERVERS = 200;
export const TOOLS_PER_SERVER = 20;
const OWNERS = ['work', 'family', 'club', 'nina', 'otto'] as const;

export interface CatalogTool {
  /** `domain.name` of the tool, which its near-duplicates share. */
  readonly key: string;
  readonly tool: Tool;
}

export interface CatalogServer {
  /** The label of its agent. */
  readonly label: string;
  readonly owner: string;
  readonly domain: string;
  readonly tools: readonly CatalogTool[];
}

export interface Question {
  readonly text: string;
  readonly key: string;
  /** The owner of the server that the question names; undefined if any server is right. */
  readonly owner: string | undefined;
}

interface Template {
  readonly name: string;
  readonly description: string;
  readonly parameters: readonly string[];
}

/** Other words for the first word of a name and a description, by style. */
const VERBS: readonly Readonly<Record<string, string>>[] = [
  {},
  { get: 'fetch', list: 'get', create: 'add', delete: 'remove', update: 'edit', search: 'find' },
  { get: 'show', create: 'new', delete: 'delete', search: 'query' },
  {},
  { get: 'read', list: 'list', find: 'search', add: 'create', set: 'change' },
];

const BEFORE = ['', 'Use this tool when the user wants to do the following: ', '', '', ''];
const AFTER = [
  '',
  '',
  '',
  ' Returns a JSON object with the result and a request ID. Errors contain a code and a message. Respect the rate limit of 60 requests per minute.',
  ' (read the documentation before the first use)',
];

function lines(file: string): string[] {
  const text = readFileSync(new URL(`./hub-catalog/${file}`, import.meta.url), 'utf8');
  return text.split('\n').filter((line) => line !== '');
}

function domains() {
  const all: { name: string; title: string; templates: Template[] }[] = [];
  for (const line of lines('tools.txt')) {
    const [, name, title] = /^# (\w+): (.*)$/.exec(line) ?? [];
    if (name !== undefined && title !== undefined) all.push({ name, title, templates: [] });
    else {
      const [tool = '', description = '', parameters = ''] = line.split('|');
      all.at(-1)?.templates.push({ name: tool, description, parameters: parameters.split(',').filter(Boolean) });
    }
  }
  return all;
}

function camel(name: string): string {
  return name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** A tool in one of the styles. */
function styled({ name, description, parameters }: Template, domain: string, style: number): CatalogTool['tool'] {
  const [verb = '', ...rest] = name.split('_');
  const changed = [VERBS[style]?.[verb] ?? verb, ...rest].join('_');
  const shown = [changed, changed, camel(changed), `${domain}_${changed}`, changed.replaceAll('_', '-')][style] ?? name;
  const text = style === 2 ? description.replace(/\.$/, '') : description;
  const properties = parameters.map((parameter): [string, { type: string; description?: string }] => [
    style === 2 ? camel(parameter) : parameter,
    { type: 'string', ...(style === 3 ? { description: `The ${parameter.replaceAll('_', ' ')}.` } : {}) },
  ]);
  return {
    name: shown,
    description: `${BEFORE[style]}${text}${AFTER[style]}`,
    inputSchema: { type: 'object', properties: Object.fromEntries(properties), required: parameters.slice(0, 1) },
  };
}

/** The servers, in an order in which the owners alternate. */
export function catalog(): CatalogServer[] {
  const kinds = domains();
  return OWNERS.flatMap((owner, style) =>
    kinds.map(({ name: domain, templates }): CatalogServer => {
      const tools = templates.map((template) => ({
        key: `${domain}.${template.name}`,
        tool: styled(template, domain, style),
      }));
      return { label: `${owner}-${domain}`, owner, domain, tools };
    }),
  ).slice(0, CATALOG_SERVERS);
}

export function questions(): Question[] {
  return lines('questions.txt').map((line) => {
    const [, key = '', owner, text = ''] = /^([\w.]+)(?:@(\w+))?\|(.*)$/.exec(line) ?? [];
    return { key, owner, text };
  });
}

/** True if a tool answers a question. */
export function isRight(server: CatalogServer, { key }: CatalogTool, question: Question): boolean {
  return key === question.key && (question.owner === undefined || question.owner === server.owner);
}
