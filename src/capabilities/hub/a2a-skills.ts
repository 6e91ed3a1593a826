/** The skills of A2A agents as tools: one message to the agent for each call, over JSON-RPC. */

import type { Card } from '../../foundation/cards/card.ts';
import type { Clock } from '../../foundation/clock.ts';
import { HUB_CALL_SILENCE_MS, MAX_HUB_TOOLS_PER_AGENT } from '../../foundation/domain/hub.ts';
import { SvcError } from '../../foundation/errors.ts';
import type { Aid } from '../../foundation/identity/aid.ts';
import { isObject, memberOf, parseJson } from '../../foundation/json.ts';
import { awakeTimeout } from '../../foundation/stall.ts';
import type { HubCall, Pair } from './mcp-servers.ts';

type Values = Readonly<Record<string, unknown>>;

/** Examples of a skill that its description contains. */
const MAX_EXAMPLES = 3;

/** The arguments of every skill. */
const SKILL_SCHEMA = {
  type: 'object',
  properties: {
    message: { type: 'string', description: 'The task for the agent, in plain language.' },
    context_id: { type: 'string', description: 'From an earlier result, to continue that conversation.' },
  },
  required: ['message'],
} as const;

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function textsOf(value: unknown): string[] {
  return listOf(value).filter((one) => typeof one === 'string');
}

/** The skills of a card in the form of tools. */
export function toolsOfCard(card: Card): readonly unknown[] {
  const skills = listOf(card['skills'])
    .filter(isObject)
    .slice(0, MAX_HUB_TOOLS_PER_AGENT + 1);
  return skills.map(({ id, name, description, tags, examples }) => {
    const paragraphs = [
      ...textsOf([description]),
      ...(textsOf(tags).length === 0 ? [] : [`Tags: ${textsOf(tags).join(', ')}.`]),
      ...textsOf(examples)
        .slice(0, MAX_EXAMPLES)
        .map((one) => `Example: ${one}`),
    ];
    return { name: id, title: name, description: paragraphs.join('\n'), inputSchema: SKILL_SCHEMA };
  });
}

interface SkillAddress {
  readonly path: string;
  /** True for A2A 0.3. */
  readonly isOld: boolean;
}

/** The JSON-RPC interface that a card names. @throws SvcError `bad_card` if there is none at the agent */
function addressIn(card: Card, aid: Aid): SkillAddress {
  const fresh = listOf(card['supportedInterfaces']).filter(isObject);
  const old = [
    { url: card['url'], transport: card['preferredTransport'] ?? 'JSONRPC' },
    ...listOf(card['additionalInterfaces']).filter(isObject),
  ];
  const wanted = [
    ...fresh
      .filter((one) => one['protocolBinding'] === 'JSONRPC')
      .map((one) => ({ url: one['url'], isOld: textsOf([one['protocolVersion']]).join('').startsWith('0.') })),
    ...old
      .filter((one) => Reflect.get(one, 'transport') === 'JSONRPC')
      .map((one) => ({ url: one['url'], isOld: true })),
  ];
  const prefix = `svc://${aid}`;
  for (const { url, isOld } of wanted) {
    if (typeof url !== 'string' || !url.startsWith(prefix)) continue;
    const path = url.slice(prefix.length);
    if (path === '' || /^\/[!-~]*$/.test(path)) return { path: path === '' ? '/' : path, isOld };
  }
  throw new SvcError('bad_card', { message: 'The card of this agent names no JSON-RPC interface of the agent.' });
}

/** The texts in the parts of a message or an artifact. */
function partTexts(value: unknown): string[] {
  return listOf(memberOf(value, 'parts')).flatMap((part) => textsOf([memberOf(part, 'text')]));
}

/** The result of a tool for the answer of an agent: a message, or a task with its artifacts. */
function resultOf(answer: Values): Values {
  const task = memberOf(answer, 'task') ?? answer;
  const message = memberOf(answer, 'message') ?? answer;
  const texts = [
    ...partTexts(message),
    ...partTexts(memberOf(task, 'status', 'message')),
    ...listOf(memberOf(task, 'artifacts')).flatMap(partTexts),
  ];
  const state = memberOf(task, 'status', 'state');
  const failed = typeof state === 'string' && /fail|reject|cancel/i.test(state);
  const text = texts.length > 0 ? texts.join('\n\n') : JSON.stringify(answer);
  return {
    content: [{ type: 'text', text }],
    structuredContent: answer,
    ...(failed ? { isError: true } : {}),
  };
}

export interface A2aSkillsDependencies {
  readonly clock: Clock;
  /** The signed card of an agent; null if it has none or it is of another kind. */
  readonly card: (pair: Pair, signal: AbortSignal) => Promise<Card | null>;
  readonly fetch: (pair: Pair) => (url: string | URL, init?: RequestInit) => Promise<Response>;
  readonly newId: () => string;
}

export class A2aSkills {
  readonly #deps: A2aSkillsDependencies;

  constructor(dependencies: A2aSkillsDependencies) {
    this.#deps = dependencies;
  }

  /** @throws SvcError as `RemoteCards.get`, except for an agent without a card, whose list is empty */
  async list(pair: Pair, signal: AbortSignal): Promise<readonly unknown[]> {
    const card = await this.#deps.card(pair, signal);
    return card === null ? [] : toolsOfCard(card);
  }

  /**
   * Sends the message of a call to the agent and waits for its answer.
   * @throws SvcError `invalid_request`, `bad_card`, `bad_response`, `timeout`, `cancelled`, errors of a call
   */
  async call(pair: Pair, { name, args, signal, trace }: HubCall): Promise<Values> {
    const { message, context_id: context } = args;
    if (typeof message !== 'string' || message === '')
      throw new SvcError('invalid_request', { message: 'A skill needs the argument "message" with a text.' });
    const card = await this.#deps.card(pair, signal);
    if (card === null) throw new SvcError('not_found', { thing: 'card', message: 'This agent publishes no card.' });
    const { path, isOld } = addressIn(card, pair.remote);
    const text = isOld ? { kind: 'text', text: message } : { text: message };
    const id = this.#deps.newId();
    const sent = {
      messageId: id,
      role: isOld ? 'user' : 'ROLE_USER',
      parts: [text],
      ...(isOld ? { kind: 'message' } : {}),
      ...(typeof context === 'string' && context !== '' ? { contextId: context } : {}),
      // Agents with several skills may use it to choose one.
      metadata: { 'svcd/skill': name },
    };
    using limit = awakeTimeout(this.#deps.clock, HUB_CALL_SILENCE_MS, signal);
    const response = await this.#deps.fetch(pair)(new URL(path, 'http://agent.invalid'), {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json',
        'a2a-version': isOld ? '0.3' : '1.0',
        ...trace,
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id,
        method: isOld ? 'message/send' : 'SendMessage',
        params: { message: sent },
      }),
      signal: limit.signal,
    });
    // The limits of an event stream count its events, not its text.
    const isStream = /^text\/event-stream/i.test(response.headers.get('content-type') ?? '');
    if (isStream) await response.body?.cancel();
    const answer = isStream ? null : parseJson(await response.text());
    const error = memberOf(answer, 'error');
    if (isObject(error)) return { isError: true, content: [{ type: 'text', text: JSON.stringify(error) }] };
    const result = memberOf(answer, 'result');
    if (!isObject(result))
      throw new SvcError('bad_response', { message: 'The remote agent sent no valid A2A response.' });
    return resultOf(result);
  }
}
