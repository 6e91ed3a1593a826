/**
 * Messages of MCP callers with members in another case or form. A reader that ignores case and takes the last member
 * must read what svcd read.
 */
import { limitMessage } from '../../../src/capabilities/calls/tool-limit.ts';
import { parseIntegers } from '../../../src/foundation/json.ts';
import { parseMessage } from '../../../src/foundation/rpc-message.ts';
import { readMessageValue } from '../../../src/surfaces/mcp/message-reader.ts';
import { fromCaller } from '../../../src/surfaces/mcp-share/messages.ts';
import type { Random } from '../../support/random.ts';
import { editBytes, join } from '../engine/bytes.ts';
import { bytesOf, decoder, violation } from '../engine/properties.ts';
import type { FuzzTarget } from '../engine/target.ts';

const ALLOWED = 'search';
const CALLER = 'aid1caller';

// A reader as tolerant as the worst known parsers.

/** How parsers compare names: Go, .NET, Java, one that normalizes, one in C, and one that skips separators. */
const FOLDS: readonly ((name: string) => string)[] = [
  (name) => name.toLowerCase().replaceAll('\u017f', 's').replaceAll('\u212a', 'k'),
  (name) => name.toUpperCase(),
  (name) => name.normalize('NFKC').toLowerCase().trim(),
  (name) => name.split('\u0000', 1)[0]?.toLowerCase() ?? '',
  (name) => name.toLowerCase().replaceAll(/[_-]/g, ''),
];

/** The last member of an object with this name. */
function lastOf(value: unknown, wanted: string, fold: (name: string) => string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.entries(value).findLast(([name]) => fold(name) === fold(wanted))?.[1];
}

/** True if no object of a text that svcd wrote repeats a name, so that parsing it loses nothing. */
function isOneValue(text: string): boolean {
  return JSON.stringify(parseIntegers(text)) === text;
}

function checkTool(written: string): void {
  const message: unknown = JSON.parse(written);
  if (!isOneValue(written)) throw violation('svcd wrote a repeated member', written);
  for (const fold of FOLDS) {
    const params = lastOf(message, 'params', fold);
    const method = lastOf(message, 'method', fold);
    const isCall = typeof method === 'string' && fold(method) === fold('tools/call');
    if (isCall && lastOf(params, 'name', fold) !== ALLOWED) throw violation('another tool', written);
  }
}

function checkCaller(written: string): void {
  const message: unknown = JSON.parse(written);
  if (!isOneValue(written)) throw violation('svcd wrote a repeated member', written);
  for (const fold of FOLDS) {
    const meta = lastOf(lastOf(message, 'params', fold), '_meta', fold);
    const caller = lastOf(meta, 'svcd/caller', fold);
    const isRequest = lastOf(message, 'method', fold) !== undefined && lastOf(message, 'id', fold) !== undefined;
    if (caller !== (isRequest ? CALLER : undefined)) throw violation('a forged caller', written);
  }
}

// Edits that add members in other spellings.

const NAMES = ['jsonrpc', 'id', 'method', 'params', 'name', 'arguments', '_meta', 'svcd/caller', 'progressToken'];
const VALUES = [
  '"delete"',
  '"tools/call"',
  '"Tools/Call"',
  '"tool\u017f/call"',
  '"tools/call\\u0000x"',
  '"ping"',
  '1',
  'null',
  '{"name":"delete"}',
  '{"svcd/caller":"x"}',
  '[]',
];
/** Characters that some parsers read as another one, or skip. */
const OTHERS: Readonly<Record<string, string>> = {
  s: '\u017f',
  k: '\u212a',
  i: '\u0131',
  n: '\uff4e',
  a: 'a\u0301',
  m: '\uff2d',
  e: 'e\u200b',
  d: 'd\u0000',
  r: '_r',
};

/** A name in another case or form, as it may appear in a text. */
function spelled(name: string, random: Random): string {
  const characters = Array.from(name, (character) => {
    const at = random.below(8);
    const other = at === 0 ? character.toUpperCase() : at === 1 ? (OTHERS[character] ?? character) : character;
    const isEscaped = random.chance(0.1) && other.length === 1;
    return isEscaped ? `\\u${other.charCodeAt(0).toString(16).padStart(4, '0')}` : other;
  });
  return characters.join('');
}

/** Adds a member at the start or the end of an object, or replaces a name. */
function editMembers(input: Uint8Array, random: Random): Uint8Array {
  if (random.chance(0.15)) return editBytes(input, random);
  const text = Buffer.from(input).toString('utf8');
  const braces = [...text.matchAll(/[{}]/g)].map(({ index }) => index);
  if (braces.length === 0) return editBytes(input, random);
  const at = random.pick(braces);
  const member = `"${spelled(random.pick(NAMES), random)}":${random.pick(VALUES)}`;
  const isStart = text[at] === '{';
  const cut = isStart ? at + 1 : at;
  const added = isStart ? `${member},` : `,${member}`;
  return join(Buffer.from(text.slice(0, cut)), Buffer.from(added), Buffer.from(text.slice(cut)));
}

const SEEDS = [
  '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search","arguments":{"q":"x"}}}',
  '{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"search"}}',
  '{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{}}',
  '{"jsonrpc":"2.0","method":"notifications/initialized"}',
  '{"jsonrpc":"2.0","id":3,"result":{}}',
];
const seeds = () => bytesOf(...SEEDS);

const limited = decoder({
  name: 'mcp-limited',
  inputs: 4000,
  edit: editMembers,
  words: [...NAMES.map((name) => `"${name}":`), '\uFEFF', '\\u006e', '{', '['],
  refuses: ['access_denied', 'too_large'],
  seeds,
  decode: (bytes) => limitMessage(bytes, { tools: [ALLOWED], isServer: false }),
  check: ({ message, tool }) => {
    checkTool(JSON.stringify(message));
    return tool ?? '';
  },
});

const shared = decoder({
  name: 'mcp-shared',
  inputs: 4000,
  edit: editMembers,
  words: [...NAMES.map((name) => `"${name}":`), '"svcd/', '\uFEFF', '{'],
  refuses: ['invalid_json'],
  seeds,
  decode: (bytes) => {
    const read = readMessageValue(parseMessage(bytes));
    return 'message' in read ? read.message : null;
  },
  check: (message) => checkCaller(JSON.stringify(fromCaller(message, CALLER))),
});

const server = decoder({
  name: 'mcp-limited-server',
  inputs: 2000,
  edit: editMembers,
  words: [...NAMES.map((name) => `"${name}":`), '"resources/read"'],
  refuses: ['access_denied', 'too_large'],
  seeds,
  decode: (bytes) => limitMessage(bytes, { tools: [ALLOWED], isServer: true }),
  check: ({ message, tool }) => {
    checkTool(JSON.stringify(message));
    return tool ?? '';
  },
});

export const mcpTargets: readonly FuzzTarget[] = [limited, server, shared];
